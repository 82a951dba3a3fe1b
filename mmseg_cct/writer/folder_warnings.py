"""Tells what in a folder is worth a second look before a training."""

from collections import Counter
from collections.abc import Iterator

from mmseg_cct.config.compose import merged
from mmseg_cct.datasets.files.image_files import describe_left_out, find_masks
from mmseg_cct.datasets.files.labels import judge_labels
from mmseg_cct.datasets.files.layouts import training_dirs
from mmseg_cct.datasets.hold_out import one_sided
from mmseg_cct.engine.doubtful_masks import FEWEST, contradictions, judge_masks
from mmseg_cct.engine.frozen_features import load_encoder
from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import one_line

from .base_model import base_model, start_settings
from .choices import Choices
from .folder_plan import Folder, Plan

# Masks to compare with one another; of more, the tool that does only that takes minutes.
_MOST_JUDGED = 100


def folder_warnings(folder: Folder, plan: Plan, choices: Choices) -> Iterator[str]:
    """Tells what is worth a second look; refuses labels that cannot be meant."""
    yield from _judged_labels(folder, plan)
    yield from _doubts(folder, choices)


def _judged_labels(folder: Folder, plan: Plan) -> Iterator[str]:
    """Tells of files that are no images, labelled tests, and classes that a side lacks."""
    if folder.left_out:
        yield describe_left_out(training_dirs(folder.data)[0], folder.left_out)
    if tests := [name for name in folder.summary.labels if name.lower().startswith('test/')]:
        problem = f'{len(tests)} labelled images of its folder test train, too'
        yield f'{training_dirs(folder.data)[0]}: {problem}; move them out to test on them'
    labels = Counter(folder.summary.labels.values())
    yield from judge_labels(labels, folder.classes, 'masks', dirs=training_dirs(folder.data))
    sides = folder.summary.sides(plan.held_out)
    unseen, untrained = one_sided(*(side.values() for side in sides))
    for ids, split, effect in (
        (unseen, 'validation', 'its IoU cannot be measured'),
        (untrained, 'training', 'it is never learned'),
    ):
        if ids:
            names = ', '.join(folder.classes[index] for index in sorted(ids))
            yield f'masks: no {split} mask contains {names}, so {effect}'


def _doubts(folder: Folder, choices: Choices) -> Iterator[str]:
    """Names masks that the others contradict, and equal images with different masks."""
    if not FEWEST <= len(folder.summary.labels) <= _MOST_JUDGED:
        return
    images = folder.images
    masks = find_masks(training_dirs(folder.data)[1], choices.mask_suffix)
    try:
        if pairs := contradictions(images, masks):
            first, second = pairs[0]
            more = f' ({len(pairs)} such pairs)' if pairs[1:] else ''
            yield f'masks: {first} and {second} are the same image with different masks{more}'
        if choices.from_scratch:
            return
        model = base_model(choices)
        start = start_settings(model.backbone, choices.weights, False)
        model.backbone = merged(model.backbone, start)
        judged = judge_masks(load_encoder(model), images, masks, len(folder.classes))
    except UserError as error:
        yield f'masks: not compared with one another: {one_line(error)}'
        return
    if doubtful := [mask.name for mask in judged if mask.is_doubtful]:
        names = f'{", ".join(doubtful[:3])}{" and more" if doubtful[3:] else ""}'
        yield f'masks: {names} may be of another image, as the others predict other classes there'
