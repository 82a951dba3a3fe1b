"""Logs model, method and findings."""

import torch
from mmengine.device import get_device
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.config.shipped import method_in_name
from mmseg_cct.config.walk import get_by_key
from mmseg_cct.engine.findings import findings, validation_findings
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.utils.log import say


@HOOKS.register_module()
class FindingsHook(Hook):
    """Logs model and method, and findings that mIoU hides.

    At the start: whether a batch repeats labelled images, and the validation images are few or the
    test set. At the end: which classes are at IoU 0, and whether mIoU still rises or has fallen.
    """

    # After the checks of `PreflightHook`, before the progress bar.
    priority = 'ABOVE_NORMAL'

    def before_train(self, runner: Runner) -> None:
        if not is_main_process():
            return
        say(describe_model(runner))
        notes = []
        labeled = getattr(runner.train_dataloader.dataset, 'labeled', ())
        size = runner.train_dataloader.batch_size
        if labeled and size > len(labeled):
            notes.append(f'a batch of {size} repeats some of the {len(labeled)} labelled images')
        if runner.val_loop is not None:
            validated = get_by_key(runner.cfg, 'val_dataloader.dataset')
            tested = get_by_key(runner.cfg, 'test_dataloader.dataset')
            is_test_set = tested is not None and validated == tested
            notes += validation_findings(len(runner.val_dataloader.dataset), is_test_set)
        for line in notes:
            say(f'Note: {line}')

    def after_train(self, runner: Runner) -> None:
        if not is_main_process():
            return
        scalars = runner.message_hub.log_scalars
        curve = scalars['val/mIoU'].data[0].tolist() if 'val/mIoU' in scalars else []
        start = 'val/IoU.'  # as `ClassIoUMetric` names them
        names = [name for name in scalars if name.startswith(start)]
        iou = {n.removeprefix(start): float(scalars[n].current()) for n in names}
        for line in findings(curve, iou):
            say(f'Note: {line}')


def describe_model(runner: Runner) -> str:
    """Describes in one line what is trained, by which method and where."""
    model = unwrap_model(runner.model)
    parts = [getattr(model, name, None) for name in ('backbone', 'decode_head')]
    inner = getattr(parts[0], 'backbone', parts[0])  # the one inside a MultiChannelBackbone
    names = [type(part).__name__ for part in (inner, parts[1]) if part is not None]
    millions = sum(p.numel() for p in model.parameters() if p.requires_grad) / 1e6
    by = f' by {method}' if (method := method_in_name(runner.cfg.filename)) else ''
    device = get_device()
    hardware = f'the CPU (threads: {torch.get_num_threads()})' if device == 'cpu' else device
    return (
        f'Model: {" and ".join([type(model).__name__, *names])}, {millions:.1f} million parameters '
        f'to learn{by}, on {hardware}; log and checkpoints in {runner.work_dir}'
    )
