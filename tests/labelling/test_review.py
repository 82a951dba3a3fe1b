import base64
import io
import re
import shutil
import subprocess
from pathlib import PurePath

import numpy as np
import pytest
from PIL import Image

from mmseg_cct.labelling.review import PageImage, image_page, label_layer, label_legend

BROWSERS = 'chromium', 'chromium-browser', 'google-chrome'
RED, BLUE = (200, 0, 0), (0, 0, 200)
# Presses keys; the title is then which image was shown after each, and how strong its overlay was.
PRESS = """
<script>
  const log = [];
  for (const key of %s) {
    document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    const at = [...document.querySelectorAll('.case')].findIndex(each => !each.hidden);
    const layer = document.querySelectorAll('.case')[at].querySelector('img.labels');
    log.push(`${at}:${getComputedStyle(layer).opacity}`);
  }
  document.title = log.join(' ');
</script>
"""


def page(number=3, names=('sky', 'a <b> & c')):
    labels = np.repeat(np.uint8([0, 1, 0]), 20)[None].repeat(40, 0)
    batch = [
        PageImage(
            name=PurePath(f'a/{index} "quoted" <i>.jpg'),
            size=(120, 80),
            photo=np.full((40, 60, 3), 128, np.uint8),
            detail=f'rank {index + 1}',
            layers=[label_layer('prediction', labels, names, [RED, BLUE])],
            legend=label_legend(labels, names, [RED, BLUE]),
            doubt=np.linspace(0, 0.5, 600, dtype=np.float32).reshape(20, 30),
        )
        for index in range(number)
    ]
    return image_page('Label next', '2 of 9', batch, 'doubt')


def pictures(text, kind):
    found = re.findall(rf'data:image/{kind};base64,([^"\')]+)', text)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in found]


def test_nothing_is_fetched_and_names_are_text():
    text = page()
    sources = re.findall(r'(?:src|href)="([^"]*)"|url\(\'([^\']*)\'\)', text)
    assert sources and all(''.join(source).startswith('data:image/') for source in sources)
    assert 'http' not in text
    assert '<i>.jpg' not in text and 'a &lt;b&gt; &amp; c' in text
    assert text.count('66.7 %') == text.count('33.3 %') == 3


def test_the_photo_keeps_its_colours_and_doubt_is_bright():
    photo = np.full((40, 60, 3), (200, 0, 0), np.uint8)
    values = np.repeat(np.float32([[0, 1]]), 15, 1).repeat(20, 0)
    image = PageImage(PurePath('a.jpg'), (60, 40), photo, doubt=values)
    text = image_page('', '', [image])
    shown = [np.array(picture).astype(int) for picture in pictures(text, 'jpeg')]
    heat = [each for each in shown if each.shape == (20, 30, 3)]
    photos = [each for each in shown if each.shape != (20, 30, 3)]
    assert photos and heat
    assert all(np.abs(each - (200, 0, 0)).max() < 9 for each in photos)
    assert all(each[:, 20:].mean() > each[:, :10].mean() + 50 for each in heat)


@pytest.fixture
def browse(tmp_path):
    """What a browser makes of a page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip('needs chromium or google-chrome, in which the page is opened')

    def browse(text):
        (tmp_path / 'page.html').write_text(text)
        command = [browser, '--headless', '--no-sandbox', '--disable-gpu', '--dump-dom']
        command += [f'--user-data-dir={tmp_path}/profile', f'{tmp_path}/page.html']
        return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout

    return browse


@pytest.mark.slow
def test_keys_show_other_images_and_fade_the_overlay(browse):
    keys = ['ArrowRight', 'End', 'ArrowRight', 'ArrowUp', ' ', ' ', 'ArrowDown', 'Home']
    title = '1:0.5 2:0.5 2:0.5 2:0.6 2:0 2:0.6 2:0.5 0:0.5'
    assert f'<title>{title}</title>' in browse(page() + PRESS % keys)


@pytest.mark.slow
def test_marks_survive_a_reload_and_are_those_of_a_batch(browse):
    def marks(text, *keys):
        return re.search('>1 of . · (.*)</span>', browse(text + PRESS % list(keys)))[1]

    assert marks(page(), 's', 'ArrowRight', 'd', 'ArrowRight', 'd', 'Home') == '2 done, 1 skipped'
    assert marks(page(), 'S') == '2 done, 0 skipped'
    assert marks(page(2)) == '0 done, 0 skipped'
