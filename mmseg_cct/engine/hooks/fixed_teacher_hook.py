"""A trained network of any architecture as the teacher."""

from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from mmseg.registry import MODELS

from mmseg_cct.config.walk import forget_initial_weights, get_by_key
from mmseg_cct.engine.checkpoints import find_trained, read_checkpoint
from mmseg_cct.engine.models import unwrap_model
from mmseg_cct.engine.weights import require_matching_weights, weights
from mmseg_cct.errors import UserError


@HOOKS.register_module()
class FixedTeacherHook(Hook):
    """Lets a trained network predict the targets, such as a large one those of a small one.

    It may have any architecture of MMSeg, but must have the student's classes and normalisation. It
    is read when a training starts or resumes and is in none of its checkpoints. In place of a
    `TeacherHook`::

        default_hooks = dict(
            teacher=None, fixed_teacher=dict(type='FixedTeacherHook', run='work_dirs/large')
        )

    Args:
        run: Work directory of the teacher's training, a checkpoint in it, or its config. '{seed}'
            in it stands for the seed of this training, for studies.
        checkpoint: Its weights; needed with a config, else the last in the work directory.
    """

    def __init__(self, run: str, checkpoint: str | None = None) -> None:
        self.run = run
        self.checkpoint = checkpoint

    def before_train(self, runner: Runner) -> None:
        """Builds the teacher, loads it and gives it to the model."""
        run = self.run.replace('{seed}', str(runner.seed))
        config, checkpoint = find_trained(run, self.checkpoint)
        # other classes or colours fit in shape, and would teach nonsense
        content = read_checkpoint(checkpoint)
        classes = get_by_key(content, 'meta.dataset_meta.classes')
        settings = [('classes', classes, runner.train_dataloader.dataset.metainfo['classes'])]
        for key in ('mean', 'std', 'bgr_to_rgb'):
            key = f'model.data_preprocessor.{key}'
            settings.append((key, get_by_key(config, key), get_by_key(runner.cfg, key)))
        for key, of_teacher, of_student in settings:
            if of_teacher != of_student and list(of_teacher or ()) != list(of_student or ()):
                expected = f'{of_student}, as the student has'
                raise UserError(f'{checkpoint}: {key}', of_teacher, expected)
        forget_initial_weights(config.model)
        config.model.auxiliary_head = None  # as at inference
        teacher = MODELS.build(config.model)
        require_matching_weights(teacher, content, checkpoint, training=False)
        teacher.load_state_dict(weights(content), strict=False)
        student = unwrap_model(runner.model)
        device = next(student.parameters()).device
        student.set_teacher(teacher.to(device).requires_grad_(False).eval())
