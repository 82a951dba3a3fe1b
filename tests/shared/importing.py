"""An export of one square, and the masks that are imported."""

from exports import HEIGHT, WIDTH, write
from PIL import Image

from mmseg_cct.annotations import importer
from mmseg_cct.datasets.files.images import read_mask

SQUARE = [[0, 0], [8, 0], [8, 8], [0, 8]]


def import_masks(source, out, progress=iter, **options):
    return importer.import_masks(source, out, importer.ImportOptions(**options), progress)


def labelme(path, label='car', size=(WIDTH, HEIGHT), points=SQUARE, **more):
    shape = dict(label=label, shape_type='polygon', points=points)
    content = dict(imagePath=f'{path.stem}.jpg', imageWidth=size[0], imageHeight=size[1])
    write(path, {**content, 'shapes': [shape], **more})
    return path


def ids(out, name):
    return read_mask(out / 'masks' / f'{name}.png')


def masks_of(root, array, name='masks/a/1.png'):
    """A folder with one mask, for the first of the photos."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(root / name)
    return root / name.split('/')[0]
