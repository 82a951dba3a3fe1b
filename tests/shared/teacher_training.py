"""Trainings of four iterations on drawn scenes, for the tests of hooks."""

import tiny
import world


class Recorder(world.Recorder):
    """Keeps the modes of student and teacher after each iteration, too."""

    def __init__(self, kill_after=None):
        super().__init__(kill_after)
        self.training = []

    @property
    def outputs(self):
        return list(self.logged.values())

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        (teacher,) = runner.model._teacher
        self.training.append((runner.model.training, teacher.training))
        super().after_train_iter(runner, batch_idx, data_batch, outputs)


def scenes(start, count, labeled=True):
    return dict(
        type='ShapesDataset',
        start=start,
        count=count,
        size=32,
        pipeline=[dict(type='DrawShapesScene', with_seg_map=labeled), dict(type='PackSegInputs')],
    )


def train(work_dir, hook, model=None, resume=False, kill_after=None, hooks=(), optim=None):
    """Trains four iterations with a teacher's hook and gives the recorder and the runner."""
    config, recorder = world.cct_config(''), Recorder(kill_after)
    config.model = tiny.model_config() if model is None else model
    for head in filter(None, (config.model.decode_head, config.model.auxiliary_head)):
        head.num_classes = 7
    config.train_dataloader.sampler.shuffle = True
    config.train_dataloader.dataset = dict(
        type='SemiSegDataset', labeled=scenes(0, 3), unlabeled=scenes(100, 4, labeled=False)
    )
    config.val_dataloader.batch_size = 2
    config.val_dataloader.dataset = scenes(200, 2)
    config.train_cfg.update(max_iters=4, val_interval=2)
    config.optim_wrapper.update(optim or {})
    config.default_hooks = dict(
        checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2, save_best='mIoU')
    )
    config.custom_hooks = [dict(type='IterationSeedHook'), hook]
    config.param_scheduler = None
    world.run(config, work_dir, recorder, hooks, resume=resume)
    return recorder, recorder.runner
