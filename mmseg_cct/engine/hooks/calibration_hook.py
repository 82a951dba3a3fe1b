"""Calibration of the predictions at each validation."""

from typing import Any

import numpy as np
from mmengine.dist import all_reduce, get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner
from mmseg.models import EncoderDecoder

from mmseg_cct.engine.model_wrappers import unwrap_model
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation.calibration import CalibrationCounts, calibration_record
from mmseg_cct.evaluation.score_maps import count_decoders, resize_nearest, score_maps
from mmseg_cct.models.segmentors.requirements import require_one_output_per_class
from mmseg_cct.utils.ranges import at_least, ranges
from mmseg_cct.visualization.calibration import write_calibration_files


@HOOKS.register_module()
class CalibrationHook(Hook):
    """Logs at each validation how well confidence and agreement tell right pixels from wrong ones.

    `confidence.separation` is the probability that a right pixel is more confident than a wrong one
    (AUROC), `confidence.calibration_error` the mean distance of the confidence from the share of
    right pixels (ECE). With auxiliary decoders, the same is logged for their `agreement`.
    After training, `calibration.png` (reliability diagrams) and `calibration.json` in the work
    directory show the last validation, as `tools/analyze_calibration.py` does for a checkpoint.

    Some validation images are run twice; training steps and random states do not change.

    Args:
        num_images: Approximate number of images, evenly spaced over the validation set.
        seed: Seed of the perturbations, the same for every image.
    """

    priority = 'NORMAL'  # before the logger

    @ranges(num_images=at_least(1))
    def __init__(self, num_images: int = 30, seed: int = 0) -> None:
        self.num_images = num_images
        self.seed = seed
        self.batches: set[int] = set()
        self.counts: CalibrationCounts | None = None

    def before_train(self, runner: Runner) -> None:
        """Raises `UserError` unless there is one main decoder with an output for each class."""
        if not isinstance(model := unwrap_model(runner.model), EncoderDecoder):
            raise UserError(
                f'CalibrationHook: model.type={type(model).__name__}; expected an EncoderDecoder, '
                'such as CCTSegmentor'
            )
        require_one_output_per_class(model.decode_head)

    def before_val_epoch(self, runner: Runner) -> None:
        """Resets the counts, and chooses this process's batches."""
        loader = runner.val_dataloader
        self.counts = CalibrationCounts(count_decoders(unwrap_model(runner.model)))
        wanted = -(-self.num_images // ((loader.batch_size or 1) * get_world_size()))
        chosen = np.linspace(0, len(loader) - 1, min(wanted, len(loader))).round()
        self.batches = set(chosen.astype(int).tolist())

    def after_val_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Counts the pixels of a chosen batch."""
        if batch_idx not in self.batches:
            return
        assert self.counts is not None
        model = unwrap_model(runner.model)
        classes = runner.val_dataloader.dataset.metainfo['classes']
        for inputs, sample in zip(data_batch['inputs'], data_batch['data_samples']):
            item = dict(inputs=inputs, data_samples=sample)
            scores, labels = score_maps(model, item, classes, self.seed)
            truth = resize_nearest(sample.gt_sem_seg.data.cpu(), labels.shape)
            self.counts.add(scores, labels, truth)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """Logs the figures over all processes."""
        assert self.counts is not None
        for counts in self.counts.pixels_and_right.values():
            all_reduce(counts)
        for name, record in calibration_record(self.counts.reliability()).items():
            for figure in ('separation', 'calibration_error'):
                if record[figure] is not None:
                    runner.message_hub.update_scalar(f'val/{name}.{figure}', record[figure])

    def after_train(self, runner: Runner) -> None:
        """Writes the diagrams and numbers of the last validation."""
        if self.counts is None or not is_main_process():
            return
        write_calibration_files(runner.work_dir, self.counts.reliability())
