import base64
import io
import re
from pathlib import PurePath

import numpy as np
from PIL import Image

from mmseg_cct.analysis.batch_image import BatchImage
from mmseg_cct.analysis.review import review_page


def test_the_photo_keeps_its_colours_and_disagreement_is_bright():
    photo = np.full((40, 60, 3), (200, 0, 0), np.uint8)
    values = np.zeros((20, 30), np.float32)
    values[:, 15:] = 1
    image = BatchImage(PurePath('a.jpg'), 1, 0.5, photo, photo[..., 1], values, (60, 40))
    text = review_page([image], 'x', [], ('sky',), [(0, 0, 200)])
    shown = [
        np.array(Image.open(io.BytesIO(base64.b64decode(data)))).astype(int)
        for data in re.findall(r'data:image/jpeg;base64,([^"\')]+)', text)
    ]
    heat = [each for each in shown if each.shape == (20, 30, 3)]
    photos = [each for each in shown if each.shape != (20, 30, 3)]
    assert photos and heat
    assert all(np.abs(each - (200, 0, 0)).max() < 9 for each in photos)
    assert all(each[:, 20:].mean() > each[:, :10].mean() + 50 for each in heat)
