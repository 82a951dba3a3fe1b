"""Stops training at the first non-finite loss."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed
from mmengine.dist import all_gather_object, barrier, is_distributed
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from torch import Tensor

from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.optimizers import optim_wrappers
from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.transfer import to_host


@HOOKS.register_module()
class NonFiniteLossHook(Hook):
    """Stops the training at a NaN or infinite loss, and saves what is needed to find the cause.

    The message names the iteration, the terms and the image files. The work directory gets
    `nonfinite_iter_T.pth`, a checkpoint from before the step of iteration T, from which `--resume`
    repeats exactly this iteration, with the same images and draws.

    The losses are checked as they leave the model, so the scaling of float16 gradients, which
    overflows now and then by design, raises no alarm. The verdict is copied to the host during the
    backward pass and read just before the optimizer steps: by then the forward pass is long over,
    so no GPU idles. All ranks learn of it through one reduction of a single number, and stop
    together. The terms are copied too, because logging them would wait for the GPU once per term.
    """

    # before RuntimeInfoHook logs the terms
    priority = 'HIGHEST'

    def __init__(self) -> None:
        self._runner: Any = None
        self._batch: Any = None
        # names of the terms, and the function that waits for the values of the last forward pass
        self._pending: tuple[list[str], Callable[[], Tensor]] | None = None
        self._logged: dict[str, Tensor] = {}

    def before_train(self, runner: Runner) -> None:
        """Starts watching the model's losses and the optimizer's steps."""
        self._runner = runner
        unwrap_model(runner.model).register_forward_hook(self._watch)
        for wrapper in optim_wrappers(runner):
            wrapper.optimizer.register_step_pre_hook(lambda *_: self._judge())

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        """Keeps the batch, to name its files if its loss is not finite."""
        self._batch = data_batch

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        """Checks iterations without a step: accumulated gradients, or a step skipped by a scaler.

        Replaces the values in `outputs` by their copies on the host.
        """
        self._judge()
        self._batch = None
        if outputs is not None:
            outputs.update({k: v for k, v in self._logged.items() if k in outputs})
        self._logged = {}

    def _watch(self, model: Any, args: Any, losses: Any) -> None:
        """Starts to copy to the host what the model returned, if it is a dict of losses."""
        if not (torch.is_grad_enabled() and isinstance(losses, Mapping)):
            return
        terms = {str(name): _mean(value) for name, value in losses.items()}
        if not any('loss' in name for name in terms):
            return
        # Check the sum too: finite terms may overflow in it.
        total: Any = sum(value for name, value in terms.items() if 'loss' in name)
        # What is logged may be on another device; copying it there would wait for the GPU.
        terms = {name: value for name, value in terms.items() if value.device == total.device}
        is_bad = (~total.isfinite()).float()
        # whether it is bad on this rank, on any rank, then the values
        packed = torch.stack([is_bad, is_bad, total, *terms.values()])
        if is_distributed():
            torch.distributed.all_reduce(packed[1:2], op=torch.distributed.ReduceOp.MAX)
        self._pending = ['loss', *terms], to_host(packed)

    def _judge(self) -> None:
        """Ends the training if a loss was NaN or infinite on any rank."""
        if self._pending is None:
            return
        (names, wait), self._pending = self._pending, None
        bad_on_rank, bad_on_any, *values = wait().unbind()
        if not bad_on_any:
            self._logged = dict(zip(names, values))
            return
        runner, iteration = self._runner, self._runner.iter
        non_finite = [f'{name} is {v}' for name, v in zip(names, values) if not v.isfinite()]
        # the first is the sum, which overflows by itself where each term is finite
        terms_and_files = f'{", ".join(non_finite[1:] or non_finite)} on {_files(self._batch)}'
        by_rank = all_gather_object(terms_and_files if bad_on_rank else None)
        # The weights are equal on all ranks, and from before the step.
        file = f'nonfinite_iter_{iteration}.pth'
        meta, backend = dict(epoch=runner.epoch, iter=iteration), dict(backend='atomic_local')
        options = dict(by_epoch=False, meta=meta, backend_args=backend)
        runner.save_checkpoint(runner.work_dir, file, **options)
        barrier()  # otherwise the launcher could end rank 0 while it writes
        ranks = ', '.join(str(rank) for rank, line in enumerate(by_rank) if line is not None)
        key = f'iteration {iteration}' + (f' (rank {ranks})' if is_distributed() else '')
        state = f'{os.path.join(runner.work_dir, file)} is the state before this step'
        remedy = 'optim_wrapper.optimizer.lr or optim_wrapper.clip_grad=dict(max_norm=...) helps'
        expected = f'finite losses. {state}; --resume reproduces it. Often a lower {remedy}'
        raise UserError(key, '; '.join(filter(None, by_rank)), expected)


def _mean(value: Tensor | Sequence[Tensor]) -> Tensor:
    """Reduces a term as mmengine's `parse_losses` does."""
    if isinstance(value, Tensor):
        value = value.detach().float()
        return value.mean() if value.dim() else value  # each mean is a kernel on a GPU
    return sum(_mean(part) for part in value)  # type: ignore[return-value]


def _files(batch: Any) -> str:
    samples = batch['data_samples'] if isinstance(batch, Mapping) else batch
    branches = samples.values() if isinstance(samples, Mapping) else [samples]
    metas = [getattr(s, 'metainfo', {}) for samples in branches for s in samples or ()]
    # each file once, also if there are several views of it
    paths = dict.fromkeys(str(meta['img_path']) for meta in metas if meta.get('img_path'))
    return ', '.join(paths) if paths else 'images that have no file'
