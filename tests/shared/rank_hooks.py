"""Hooks that a config of a distributed test names, in whatever process it is loaded."""

import hashlib
import json

import torch
from mmengine.dist import get_rank
from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class RecorderHook(Hook):
    """Writes what each iteration of a rank saw, drew, logged and ended with."""

    priority = 'VERY_LOW'

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        samples = data_batch['data_samples']
        self.files = [s.img_path for branch in samples.values() for s in branch]
        self.draw = torch.random.get_rng_state().sum().item()

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        state = getattr(runner.model, 'module', runner.model).state_dict()
        raw = b''.join(value.cpu().numpy().tobytes() for value in state.values())
        weights = hashlib.sha256(raw).hexdigest()
        outputs = {key: value.item() for key, value in outputs.items()}
        line = dict(files=self.files, draw=self.draw, weights=weights, outputs=outputs)
        with open(f'{runner.work_dir}/rank{get_rank()}.jsonl', 'a') as file:
            print(json.dumps(line), file=file)


@HOOKS.register_module()
class PoisonHook(Hook):
    """Makes a loss of one iteration of one rank nan, or any value."""

    priority = 'VERY_LOW'

    def __init__(self, iteration, weight=float('nan'), rank=0):
        self.place, self.weight = (iteration, rank), weight

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        if (runner.iter, get_rank()) == self.place:
            model = getattr(runner.model, 'module', runner.model)
            model.auxiliary_head.loss_consistency.loss_weight = self.weight
