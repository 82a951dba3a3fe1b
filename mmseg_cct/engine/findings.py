"""Findings that mIoU hides: classes at 0, a curve still rising or falling.

The training's log and the report use the same sentences.
"""

from collections.abc import Iterator, Mapping, Sequence

# With fewer validation images than this, mIoU depends on single ones.
FEW_IMAGES = 20
_RISE = 1.0  # points of mIoU in the last third that call for a longer training
_FALL = 3.0  # points of mIoU below the best validation; single ones differ by up to two
_CURVE = 3  # validations that make a curve
_NAMED = 8  # classes that a line names


def findings(curve: Sequence[float], iou: Mapping[str, float]) -> Iterator[str]:
    """Puts into words what the end of a training shows, one line for each finding.

    `curve` is the mIoU of each validation, `iou` is by class that of the last, both in percent.
    """
    if zero := [name for name, value in iou.items() if value == 0]:
        line = f'{len(zero)} of {len(iou)} classes at IoU 0, no pixel found: {_some(zero)}'
        yield f'{line}; label more images that show them (mmseg-cct next-batch)'
    if len(curve) < _CURVE:
        return
    last_third = len(curve) - len(curve) // 3
    # of the best so far: the last validation alone is noisy
    rise = max(curve[last_third:]) - max(curve[:last_third])
    if rise >= _RISE:
        rose = f'mIoU rose by {rise:.1f} points in the last third of the training'
        yield f'{rose}; a longer one may give more (train_cfg.max_iters)'
    best = max(curve)
    if best - curve[-1] >= _FALL:
        yield (
            f'mIoU ended {best - curve[-1]:.1f} points below its best ({best:.1f}, validation '
            f'{curve.index(best) + 1} of {len(curve)}); a shorter training may give more '
            '(train_cfg.max_iters), or --method cct-strong if pseudo labels train the main decoder'
        )


def validation_findings(num_images: int, is_test_set: bool) -> Iterator[str]:
    """Puts into words what to know about a validation set, one line for each finding."""
    if num_images < FEW_IMAGES:
        yield f'only {num_images} validation images: mIoU is unreliable below {FEW_IMAGES}'
    if is_test_set:
        yield (
            'the validation images are the test set too: the best checkpoint is picked on them, so '
            'its IoU is optimistic; report the last checkpoint'
        )


def absent_from(split: str, names: Sequence[str]) -> str:
    """Puts into words that no validation or test mask shows some classes."""
    return (
        f'no {split} mask contains {_some(names)}: the IoU cannot be measured, and a false pixel '
        'of it adds a 0 to mIoU; add such a mask'
    )


def _some(names: Sequence[str]) -> str:
    return ', '.join(names[:_NAMED]) + (', …' if len(names) > _NAMED else '')
