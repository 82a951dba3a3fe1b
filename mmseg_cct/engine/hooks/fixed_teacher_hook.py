"""A trained network of any architecture as the teacher."""

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from mmseg.registry import MODELS

from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import forget_initial_weights, get_by_key
from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_matching_weights, weights
from mmseg_cct.errors import UserError


@HOOKS.register_module()
class FixedTeacherHook(Hook):
    """Lets a trained network predict the targets, such as a large one those of a small one.

    It may have any architecture of MMSeg, but must have the student's classes and normalisation. In
    place of a `TeacherHook`, in an overlay::

        _base_ = 'mmseg_cct::methods/cct-strong.py'
        large = 'work_dirs/cct-strong_r50'
        default_hooks = dict(
            teacher=None,
            fixed_teacher=dict(
                type='FixedTeacherHook',
                config=f'{large}/cct-strong_r50.py',
                checkpoint=f'{large}/iter_6000.pth',
            ),
        )

    Args:
        config: Path of the config that the teacher was trained with.
        checkpoint: Path of its weights.
    """

    def __init__(self, config: str, checkpoint: str) -> None:
        self.config = config
        self.checkpoint = checkpoint

    def before_train(self, runner: Runner) -> None:
        """Builds the teacher, loads it and gives it to the model."""
        config = load_config(self.config, {})
        # other classes or colours fit in shape, and would teach nonsense
        content = read_checkpoint(self.checkpoint)
        classes = get_by_key(content, 'meta.dataset_meta.classes')
        facts = [('classes', classes, runner.train_dataloader.dataset.metainfo['classes'])]
        for key in ('mean', 'std', 'bgr_to_rgb'):
            key = f'model.data_preprocessor.{key}'
            facts.append((key, get_by_key(config, key), get_by_key(runner.cfg, key)))
        for key, its, own in facts:
            if its != own and list(its or ()) != list(own or ()):
                raise UserError(f'{self.checkpoint}: {key}', its, f'{own}, as the student has')
        forget_initial_weights(config.model)
        config.model.auxiliary_head = None  # as at inference
        teacher = MODELS.build(config.model)
        require_matching_weights(teacher, content, self.checkpoint, training=False)
        teacher.load_state_dict(weights(content), strict=False)
        student = unwrap_model(runner.model)
        device = next(student.parameters()).device
        student.set_teacher(teacher.to(device).requires_grad_(False).eval())
