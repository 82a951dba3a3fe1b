"""An export of one square, and the masks that are imported."""

from exports import HEIGHT, WIDTH, png, save, write

from mmseg_cct.datasets.files.images import read_mask

SQUARE = [[0, 0], [8, 0], [8, 8], [0, 8]]


def labelme(path, label='car', size=(WIDTH, HEIGHT), points=SQUARE, **more):
    shape = dict(label=label, shape_type='polygon', points=points)
    content = dict(imagePath=f'{path.stem}.jpg', imageWidth=size[0], imageHeight=size[1])
    write(path, {**content, 'shapes': [shape], **more})
    return path


def ids(out, name):
    return read_mask(out / 'masks' / f'{name}.png')


def masks_of(root, array, name='masks/a/1.png'):
    """A folder with one mask, for the first of the photos."""
    save(root / name, png(array))
    return root / name.split('/')[0]


def saved(root, picture, end='png', folder='masks', **options):
    """A folder with one mask, in any format."""
    (root / folder).mkdir(parents=True, exist_ok=True)
    picture.save(root / folder / f'1.{end}', **options)
    return root / folder
