"""An export of one square, and the masks that are imported."""

from exports import HEIGHT, WIDTH, write

from mmseg_cct.utils.image_files import read_mask

SQUARE = [[0, 0], [8, 0], [8, 8], [0, 8]]


def labelme(path, label='car', size=(WIDTH, HEIGHT), points=SQUARE, **more):
    shape = dict(label=label, shape_type='polygon', points=points)
    content = dict(imagePath=f'{path.stem}.jpg', imageWidth=size[0], imageHeight=size[1])
    write(path, {**content, 'shapes': [shape], **more})
    return path


def ids(out, name):
    return read_mask(out / 'masks' / f'{name}.png')
