"""An image with annotations in each format, of the classes car and road."""

from exports import save, write

from mmseg_cct.annotations.drawing import rasterize
from mmseg_cct.annotations.shapes import Shape
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

SIZE = 12, 10
BOX = [2, 2, 8, 2, 8, 6, 2, 6]
CLASSES = ('car', 'road')


def of_coco(root, *annotations, size=SIZE, categories=None, file='x.json', **more):
    images = [dict(id=1, file_name='1.jpg', width=size[0], height=size[1])]
    annotations = [
        dict(dict(id=n, image_id=1, category_id=1), **each)
        for n, each in enumerate(annotations or [dict(segmentation=[BOX])], 5)
    ]
    categories = categories or [dict(id=n, name=name) for n, name in enumerate(CLASSES, 1)]
    content = dict(images=images, annotations=annotations, categories=categories, **more)
    write(root / file, content)
    return Source(root / file)


def of_cvat(root, *shapes, size=SIZE):
    labels = ''.join(f'<label><name>{name}</name></label>' for name in CLASSES)
    image = f'<image name="1.jpg" width="{size[0]}" height="{size[1]}">{"".join(shapes)}</image>'
    meta = f'<meta><task><labels>{labels}</labels></task></meta>'
    save(root / 'x.xml', f'<annotations>{meta}{image}</annotations>'.encode())
    return Source(root / 'x.xml')


def of_labelme(root, *shapes, size=SIZE):
    content = dict(imagePath='1.jpg', imageWidth=size[0], imageHeight=size[1])
    write(root / '1.json', {**content, 'shapes': [{'label': 'car', **each} for each in shapes]})
    return Source(root / '1.json')


def of_label_studio(root, *results, size=SIZE, data=None):
    given = dict(original_width=size[0], original_height=size[1], type='polygonlabels')
    done = dict(result=[{**given, **each} for each in results])
    data = data or dict(image='s3://x/1.jpg')
    write(root / 'x.json', [dict(id=7, data=data, annotations=[done])])
    return Source(root / 'x.json')


def drawn(annotations):
    """Ids of the only image by the reader's classes, 9 elsewhere."""
    (image,) = annotations.images
    if isinstance(image, UserError):
        raise image
    ids = {name: index for index, name in enumerate(annotations.classes)}
    shapes = [part for part in image.parts if isinstance(part, Shape) and not part.left_out]
    return rasterize(shapes, image.size or SIZE, ids, 9)[0]
