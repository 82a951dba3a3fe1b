#!/usr/bin/env python
"""Converts the labels of SUN RGB-D from 37 to 13 classes, for `SUNRGBDDataset`.

Images and labels are those of github.com/ankurhanda/sunrgbd-meta-data. Put the training images into
ROOT/images/train and the test images into ROOT/images/test; the masks go to ROOT/masks.

Example:
    mmseg-cct convert-sun-rgbd sunrgbd_labels data/sun_rgbd
"""

from pathlib import Path

from mmseg_cct.cli.arguments import tool_parser
from mmseg_cct.cli.start import register, running

# The 37 classes in the order of their ids from 1, and their new names: the table "Conversion from
# SUN RGB-D/NYUv2 37/40 Labels" of github.com/ankurhanda/SceneNetv1.0 (Handa et al., CVPR 2016),
# also in class13Mapping.mat of github.com/ankurhanda/nyuv2-meta-data.
FROM_37 = {
    'wall': 'Wall', 'floor': 'Floor', 'cabinet': 'Furniture', 'bed': 'Bed', 'chair': 'Chair',
    'sofa': 'Sofa', 'table': 'Table', 'door': 'Wall', 'window': 'Window', 'bookshelf': 'Furniture',
    'picture': 'Picture', 'counter': 'Furniture', 'blinds': 'Window', 'desk': 'Table',
    'shelves': 'Furniture', 'curtain': 'Window', 'dresser': 'Furniture', 'pillow': 'Objects',
    'mirror': 'Objects', 'floor mat': 'Floor', 'clothes': 'Objects', 'ceiling': 'Ceiling',
    'books': 'Books', 'fridge': 'Furniture', 'tv': 'TV', 'paper': 'Objects', 'towel': 'Objects',
    'shower curtain': 'Objects', 'box': 'Objects', 'whiteboard': 'Objects', 'person': 'Objects',
    'night stand': 'Furniture', 'toilet': 'Objects', 'sink': 'Objects', 'lamp': 'Objects',
    'bathtub': 'Objects', 'bag': 'Objects',
}  # fmt: skip


def main() -> None:
    """Runs the tool."""
    parser = tool_parser(__doc__)
    parser.add_argument('labels', help='folder of the label images, PNGs of the 37 classes')
    parser.add_argument('root', help='folder of the data set, which holds images/')
    args = parser.parse_args()
    with running(args):
        register()
        number = convert_labels(args.labels, args.root)
    print(f'{number} masks written to {args.root}/masks')


def convert_labels(labels: str, root: str) -> int:
    """Writes a mask of the 13 classes for every image, and returns their number.

    Sorted by name, the labels of the test images come first, then those of the training images.
    """
    import numpy as np
    from PIL import Image
    from tqdm import tqdm

    from mmseg_cct.datasets.files.images import image_size, read_mask, write_png
    from mmseg_cct.datasets.files.labels import IGNORE_INDEX, check_mask
    from mmseg_cct.datasets.sun_rgbd import CLASSES
    from mmseg_cct.errors import UserError

    paths = sorted(Path(labels).glob('*.png'))
    folders = [Path(root, 'images', split) for split in ('test', 'train')]
    images = [image for folder in folders for image in sorted(folder.glob('*.jpg'))]
    if not paths or len(paths) != len(images):
        problem = f'{len(paths)} label images (*.png) for {len(images)} images'
        raise UserError(labels, problem, f'one for each in {Path(root, "images")}')
    new_ids = np.full(256, IGNORE_INDEX, np.uint8)  # 0 is void
    new_ids[1 : len(FROM_37) + 1] = [CLASSES.index(name) for name in FROM_37.values()]
    for path, image in zip(tqdm(paths, unit='image'), images):
        mask = Path(root, 'masks', image.parent.name, f'{image.stem}.png')
        label_ids, size = read_mask(path), image_size(str(image), None, decode=False)
        check_mask(path, label_ids, len(FROM_37) + 1, image=image, size=size)
        ids = new_ids[label_ids]
        if not mask.exists():
            write_png(mask, Image.fromarray(ids))
        elif not np.array_equal(read_mask(mask), ids):
            expected = 'the same, or another folder'
            raise UserError(mask, f'is there and differs from {path} in 13 classes', expected)
    return len(paths)


if __name__ == '__main__':
    main()
