"""Trains CCT on a data set class of your own, with labelled and unlabelled images.

A class is needed only where images and masks do not lie in two folders; for those there is
`mmseg-cct new-config FOLDER`. This one keeps both in one file per image, `NAME.npz`.

Usage: python examples/3_own_data_set.py [ITERATIONS]
"""

import sys
from pathlib import Path

import numpy as np
from mmcv.transforms import BaseTransform
from mmengine.config import Config
from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS, TRANSFORMS

import mmseg_cct.plugin  # noqa: F401 (registers the components)
from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import prepare_training, train

FOLDER = Path('work_dirs/examples/stripes')
CLASSES = ('ground', 'stripe')


@DATASETS.register_module()
class ArchiveDataset(BaseSegDataset):
    """Images and masks in `NAME.npz`; a file without a mask is an unlabelled image."""

    METAINFO = dict(classes=CLASSES, palette=[[0, 0, 0], [255, 160, 0]])

    def load_data_list(self) -> list[dict]:
        """Lists the files by name."""
        files = sorted(Path(self.data_prefix['img_path']).glob('*.npz'))
        return [dict(img_path=str(file), seg_fields=[], reduce_zero_label=False) for file in files]


@TRANSFORMS.register_module()
class LoadArchive(BaseTransform):
    """Loads what `ArchiveDataset` lists: the image and, for labelled ones, its mask.

    Args:
        with_mask: Whether to load the mask.
    """

    def __init__(self, with_mask: bool = True) -> None:
        self.with_mask = with_mask

    def transform(self, results: dict) -> dict:
        """Adds `img`, its size and `gt_seg_map`."""
        archive = np.load(results['img_path'])
        results['img'] = archive['image']
        results['img_shape'] = results['ori_shape'] = results['img'].shape[:2]
        if self.with_mask:
            results['gt_seg_map'] = archive['mask']
            results['seg_fields'].append('gt_seg_map')
        return results


def draw(folder: Path, count: int, seed: int, with_mask: bool) -> None:
    """Draws noisy images with a bright stripe."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(count):
        mask = np.zeros((48, 48), np.uint8)
        left = rng.integers(4, 32)
        mask[:, left : left + 10] = 1
        noise = rng.normal(90, 30, (48, 48, 3)) + 70 * mask[..., None]
        arrays = dict(image=noise.clip(0, 255).astype(np.uint8))
        np.savez(folder / f'{number}.npz', **arrays, **(dict(mask=mask) if with_mask else {}))


def dataset(part: str, *steps: dict, with_mask: bool = True) -> dict:
    """The config of one part of the data."""
    pipeline = [dict(type='LoadArchive', with_mask=with_mask), *steps, dict(type='PackSegInputs')]
    return dict(
        type='ArchiveDataset', data_prefix=dict(img_path=str(FOLDER / part)), pipeline=pipeline
    )


iterations = int(sys.argv[1]) if sys.argv[1:] else 200
draw(FOLDER / 'labeled', 8, seed=0, with_mask=True)
draw(FOLDER / 'unlabeled', 80, seed=1, with_mask=False)
draw(FOLDER / 'val', 20, seed=2, with_mask=True)

flip = dict(type='RandomFlip', prob=0.5)
head = dict(num_classes=len(CLASSES))
evaluated = dict(dataset=dict(_delete_=True, **dataset('val')))
Config(
    dict(
        _base_=str(Path('configs/demo/cct_shapes.py').resolve()),
        model=dict(decode_head=head, auxiliary_head=dict(head, context_classes=('ground',))),
        train_dataloader=dict(
            dataset=dict(
                labeled=dict(_delete_=True, **dataset('labeled', flip)),
                unlabeled=dict(_delete_=True, **dataset('unlabeled', flip, with_mask=False)),
            )
        ),
        val_dataloader=evaluated,
        test_dataloader=evaluated,
        # the check of files before training reads images, and these are archives
        default_hooks=dict(preflight=dict(files=False)),
        train_cfg=dict(max_iters=iterations, val_interval=iterations),
        param_scheduler=dict(end=iterations),
    )
).dump('work_dirs/examples/stripes.py')
train(
    prepare_training(
        'work_dirs/examples/stripes.py', Request(work_dir='work_dirs/examples/on_stripes')
    )
)
