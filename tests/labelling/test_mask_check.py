import numpy as np
from folders import save

from mmseg_cct.datasets.files.image_files import find_images, find_masks
from mmseg_cct.engine.doubtful_masks import judge_masks
from mmseg_cct.labelling.mask_check import judged_images
from mmseg_cct.labelling.review import image_page


def encode(picture):
    return picture[::10, ::10].astype(np.float32)


def test_a_doubtful_mask_is_shown_first_beside_what_the_others_expect(tmp_path):
    """Six images, dark above and bright below, with masks; the third has that of none."""
    for index in range(6):
        ids = np.repeat(np.uint8([0, 1]), [5 + 5 * index, 75 - 5 * index])[:, None].repeat(100, 1)
        pixels = np.random.default_rng(index).integers(0, 50, (80, 100, 3), np.uint8)
        pixels[ids == 1] += 180
        save(tmp_path / f'images/{index}.png', pixels)
        save(tmp_path / f'masks/{index}.png', 1 - ids if index == 2 else ids)
    images, masks = find_images(str(tmp_path / 'images')), find_masks(tmp_path / 'masks')
    shown = judged_images(judge_masks(encode, images, masks, 2), images, masks, ('road', 'sky'))
    assert [str(image.name) for image in shown if image.detail.endswith('doubtful')] == ['2']
    assert len(shown) == 6 and str(shown[0].name) == '2'
    assert [len(image.layers) for image in shown] == [2] * 6
    assert image_page('masks', '', shown).count('class="case"') == 6
