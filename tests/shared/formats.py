"""An image with an annotation in each format."""

from exports import save, write

from mmseg_cct.annotations.rasterize import rasterize
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError

SIZE = 12, 10


BOX = [2, 2, 8, 2, 8, 6, 2, 6]


def only_problem(annotations):
    """What is wrong with the only image, or with its only annotation."""
    (problem,) = annotations.images
    return str(problem) if isinstance(problem, UserError) else problem.left_out[0].fault


def of_coco(path, segmentation=(BOX,), categories=None, file='1.jpg', **more):
    annotation = dict(id=5, image_id=1, category_id=1, segmentation=list(segmentation), **more)
    if isinstance(segmentation, dict):
        annotation['segmentation'] = segmentation
    image = dict(id=1, file_name=file, width=SIZE[0], height=SIZE[1])
    categories = categories or [dict(id=1, name='car')]
    write(path, dict(images=[image], annotations=[annotation], categories=categories))
    return Source(path if path.parent.name != 'train' else path.parents[1])


def of_cvat(path, *shapes, meta=True):
    label = '<meta><job><labels><label><name>car</name></label></labels></job></meta>'
    image = f'<image name="1.jpg" width="{SIZE[0]}" height="{SIZE[1]}">{"".join(shapes)}</image>'
    save(path, f'<annotations>{label if meta else ""}{image}</annotations>'.encode())
    return Source(path)


def of_labelme(path, **shape):
    content = dict(imagePath='1.jpg', imageWidth=SIZE[0], imageHeight=SIZE[1])
    write(path, {**content, 'shapes': [{'label': 'car', **shape}]})
    return Source(path)


def of_label_studio(path, *results, **annotation):
    size = dict(original_width=SIZE[0], original_height=SIZE[1])
    done = dict(result=[{**size, **each} for each in results], **annotation)
    write(path, [dict(id=7, data=dict(image='s3://x/1.jpg'), annotations=[done])])
    return Source(path)


def of_supervisely(path, **thing):
    write(path / 'meta.json', dict(classes=[dict(title='car', color='#010203')]))
    size = dict(width=SIZE[0], height=SIZE[1])
    write(path / 'ds/ann/1.jpg.json', dict(size=size, objects=[dict(classTitle='car', **thing)]))
    return Source(path)


def drawn(annotations):
    """Ids of the only image by the reader's classes, 9 elsewhere."""
    (image,) = annotations.images
    assert not isinstance(image, UserError), image
    ids = {name: index for index, name in enumerate(annotations.classes)}
    return rasterize(image.shapes, image.size or SIZE, ids, 9).mask
