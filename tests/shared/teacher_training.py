"""Trainings of four iterations on drawn scenes, for the tests of hooks."""

import tiny
import world
from mmengine.runner import Runner


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
    model = tiny.model_config() if model is None else model
    for head in filter(None, (model['decode_head'], model['auxiliary_head'])):
        head['num_classes'] = 7
    recorder = Recorder(kill_after)
    runner = Runner(
        model=model,
        work_dir=str(work_dir),
        train_dataloader=dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='PairSampler', shuffle=True),
            dataset=dict(
                type='SemiSegDataset', labeled=scenes(0, 3), unlabeled=scenes(100, 4, labeled=False)
            ),
        ),
        val_dataloader=dict(
            batch_size=2,
            num_workers=0,
            sampler=dict(type='DefaultSampler', shuffle=False),
            dataset=scenes(200, 2),
        ),
        val_evaluator=dict(type='IoUMetric'),
        val_cfg=dict(type='ValLoop'),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=4, val_interval=2),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.05, momentum=0.9), **(optim or {})),
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2, save_best='mIoU')
        ),
        custom_hooks=[
            dict(type='IterationSeedHook'),
            hook,
            *hooks,
            recorder,
        ],
        randomness=dict(seed=0),
        default_scope='mmseg',
        log_level='ERROR',
        resume=resume,
        experiment_name=f'{work_dir.name}{resume}{kill_after}',
    )
    world.train(runner, recorder)
    return recorder, runner


def train_wide(*args, **kwargs):
    """Like `train`, for weights that are channels last."""
    return train(*args, model=tiny.widen(tiny.model_config()), **kwargs)
