"""Lines of a config that hold the sizes and pipelines of a folder's images."""

from collections.abc import Iterator

from mmseg_cct.datasets.image_values import ImageValues

from .config_text import Code, assignment
from .image_sizes import ImageSizes

# Steps that are written as variables of the config.
_NAMES = 'load', 'masks', 'pack', 'flip', 'crop', 'scale', 'whole'


def pipeline_lines(
    values: ImageValues | None, sizes: ImageSizes, has_unlabeled: bool
) -> Iterator[str]:
    """Writes sizes and pipelines; MMSegmentation's loader loads the images, if it suits them."""
    if sizes.windows:
        yield '# Images keep their size, since thin objects would disappear in smaller ones:'
        yield '# training crops them, and model.test_cfg predicts windows.'
    else:
        yield f'{assignment("image_size", sizes.size)}  # width, height; training: times 0.5 to 2'
    yield f'{assignment("crop_size", sizes.crop[::-1])}  # height, width'
    yield ''
    if values is not None:
        yield f'# {values.description}; mean and std were measured'
    yield assignment('load', values.loader if values else dict(type='LoadImageFromFile'))
    yield "masks, pack = dict(type='LoadAnnotations'), dict(type='PackSegInputs')"
    load, masks, pack, flip, crop, scale, whole = map(Code, _NAMES)
    stretch = dict(ratio_range=(0.5, 2.0), keep_ratio=True)
    if sizes.windows:  # a part alone is scaled: whole images would take seconds and gigabytes
        part = sizes.crop[0] * 2, sizes.crop[1] * 2
        yield assignment('cut', dict(type='RandomCrop', crop_size=part[::-1]))
        yield assignment('scale', dict(type='RandomResize', scale=part, **stretch))
        scaled, resized = [Code('cut'), scale], []
    else:
        size = Code('image_size')
        yield assignment('scale', dict(type='RandomResize', scale=size, **stretch))
        yield assignment('whole', dict(type='Resize', scale=size, keep_ratio=True))
        scaled, resized = [scale], [whole]
    yield assignment('crop', dict(type='RandomCrop', crop_size=Code('crop_size')))
    yield assignment('flip', dict(type='RandomFlip', prob=0.5))
    # the first of ten crops in which no class fills more than three quarters
    varied = Code('dict(crop, cat_max_ratio=0.75)')
    yield assignment('train_pipeline', [load, masks, *scaled, varied, flip, pack])
    if has_unlabeled:
        yield assignment('unlabeled_pipeline', [load, *scaled, crop, flip, pack])
    # masks after the resize: the prediction is compared at the mask's own size
    yield assignment('test_pipeline', [load, *resized, masks, pack])
    yield assignment('tta_pipeline', [load, *resized, Code('_base_.tta_pipeline[1]')])
    yield ''
