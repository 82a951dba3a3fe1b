"""One scene as each tool exports it: a road, a car on it, the same twice in folders a and b."""

import io
import json
import zipfile

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 20, 16
BOXES = {'road': (2, 4, 12, 12), 'car': (5, 6, 8, 9)}  # left, top, right, bottom
COLORS = {'car': (255, 0, 0), 'road': (0, 0, 255)}
NAMES = ('a/1', 'b/1')


def region(label):
    mask = np.zeros((HEIGHT, WIDTH), bool)
    left, top, right, bottom = BOXES[label]
    mask[top:bottom, left:right] = True
    return mask


def runs(flat):
    """Lengths of runs of 0 and 1 by turns, 0 first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(np.int8), [2]])))
    return np.diff(np.concatenate([[0], edges])).tolist()


def png(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, 'PNG')
    return buffer.getvalue()


def brush(mask):
    """Label Studio's RLE, with the runs of a row alone: a header, then repeated values."""
    values = np.repeat(mask.reshape(-1).astype(np.uint8) * 255, 4)
    bits = f'{len(values):032b}{7:05b}' + ''.join(f'{size - 1:04b}' for size in (3, 4, 8, 16))
    edges = np.flatnonzero(np.diff(values)) + 1
    for index, part in enumerate(np.split(values, edges)):
        if index % 2:  # as it is
            bits += f'0{3:02b}{len(part) - 1:016b}' + ''.join(f'{value:08b}' for value in part)
        else:
            bits += f'1{3:02b}{len(part) - 1:016b}{part[0]:08b}'
    bits += '0' * (-len(bits) % 8)
    return [int(bits[start : start + 8], 2) for start in range(0, len(bits), 8)]


def coco(root):
    categories = [dict(id=9, name='road'), dict(id=3, name='car')]
    images = [
        dict(id=n, file_name=f'{name}.jpg', width=WIDTH, height=HEIGHT)
        for n, name in enumerate(NAMES)
    ]
    road = [[2, 4, 12, 4, 12, 12, 2, 12]]
    rle = dict(size=[HEIGHT, WIDTH], counts=runs(region('car').T.reshape(-1)))
    regions = dict(category_id=3, segmentation=rle), dict(category_id=9, segmentation=road)
    annotations = [dict(each, image_id=n) for n in range(2) for each in regions]
    annotations = [dict(each, id=n) for n, each in enumerate(annotations)]
    write(root / 'x.json', dict(images=images, annotations=annotations, categories=categories))
    return root / 'x.json'


def cvat(root):
    shapes = (
        '<mask label="car" z_order="1" rle="0, 9" left="5" top="6" width="3" height="3"/>'
        '<polygon label="road" z_order="0" points="2,4;12,4;12,12;2,12"/>'
        '<polyline label="car" points="6,7;7,8"/>'
    )
    labels = ''.join(
        f'<label><name>{name}</name><color>#{bytes(color).hex()}</color></label>'
        for name, color in COLORS.items()
    )
    images = ''.join(
        f'<image name="{name}.jpg" width="{WIDTH}" height="{HEIGHT}">{shapes}</image>'
        for name in NAMES
    )
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<annotations>'
        f'<meta><task><labels>{labels}</labels></task></meta>{images}</annotations>'
    )
    with zipfile.ZipFile(root / 'x.zip', 'w') as file:
        file.writestr('annotations.xml', text)
    return root / 'x.zip'


def segmentation_mask(root):
    table = {'background': (0, 0, 0), **COLORS}
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    for label in BOXES:
        pixels[region(label)] = COLORS[label]
    for name in NAMES:
        save(root / 'x/SegmentationClass' / f'{name}.png', png(pixels))
    lines = [f'{label}:{",".join(map(str, color))}::' for label, color in table.items()]
    save(root / 'x/labelmap.txt', '\n'.join(['# label:color_rgb:parts:actions', *lines]).encode())
    return root / 'x'


EXPORTS = (coco, cvat, segmentation_mask)


def save(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def write(path, content):
    save(path, json.dumps(content).encode())


def scene(rest, **of_class):
    """The ids of the scene by name of the class."""
    mask = np.full((HEIGHT, WIDTH), rest, np.uint8)
    for label in BOXES:
        mask[region(label)] = of_class[label]
    return mask


def make_photos(root):
    """A folder of images: of those that are annotated, and one more."""
    for name in (*NAMES, 'unlabelled'):
        path = root / 'photos' / f'{name}.jpg'
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (WIDTH, HEIGHT)).save(path)
    return root / 'photos'
