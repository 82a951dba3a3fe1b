import json
import shlex

import cv2
import numpy as np
import pytest
import world
from PIL import Image

from mmseg_cct.annotations.class_table import ClassTable, read_table, write_table
from mmseg_cct.errors import UserError
from mmseg_cct.labelling import preview as module
from mmseg_cct.labelling.next_batch import BatchRequest
from mmseg_cct.labelling.preview import FolderFit, PreviewRequest, preview, preview_batch
from mmseg_cct.writer import base_model

CLASSES = 'red', 'blue', 'green'
PALETTE = (200, 0, 0), (0, 0, 200), (0, 200, 0)
MODEL = dict(backbone=dict(type='any'))


def encode(picture):
    """Colours and noise, on a grid of 10×8 cells."""
    noise = np.random.default_rng(int(picture.sum())).normal(size=(8, 10, 1)) * 5
    return np.concatenate([cv2.resize(picture, (10, 8)), noise], 2).astype(np.float32)


@pytest.fixture
def looked_at(monkeypatch, tmp_path):
    """The pictures that are encoded, by their colours."""
    pictures = []
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(
        module, 'load_encoder', lambda *_: lambda picture: pictures.append(1) or encode(picture)
    )
    return pictures


@pytest.fixture
def data(tmp_path, looked_at):
    """Nine images of two halves, red and blue; the first five have masks."""
    for index in range(9):
        ids = np.zeros((40, 50), np.uint8)
        ids[:, 5 * index + 5 :] = 1
        pixels = np.random.default_rng(index).integers(0, 40, (40, 50, 3), np.uint8)
        pixels[ids == 0, 0] += 200
        pixels[ids == 1, 2] += 200
        save(tmp_path / f'data/images/{index}.png', pixels)
        if index < 5:
            save(tmp_path / f'data/masks/{index}.png', ids)
    return tmp_path / 'data'


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def run(data, out, **options):
    return preview(PreviewRequest(str(data), CLASSES, str(out), **options), MODEL)


def test_photos_are_predicted_as_predict_writes_them(data, tmp_path):
    out = tmp_path / 'out'
    result = run(data, out)
    assert result.counts.written == 9 and result.fit.absent == ['green'] and not result.twins
    assert result.fit.fitted.ious[:2] == pytest.approx([1, 1])
    for index in range(9):
        mask = np.asarray(Image.open(out / f'masks/{index}.png'))
        assert mask.shape == (40, 50)
        assert (mask == (np.arange(50) >= 5 * index + 5)).mean() > 0.95
        assert np.asarray(Image.open(out / f'confidence/{index}.png')).shape == (40, 50)
    assert tuple(read_table(out).colors) == CLASSES
    assert len((out / 'predict.csv').read_text().splitlines()) == 10
    page = (out / 'preview.html').read_text()
    assert page.count('class="case"') == 9 and 'data-mark' not in page.partition('<script>')[0]


def test_held_out_masks_are_not_used(data, tmp_path):
    names = tmp_path / 'val.txt'
    names.write_text('0\n3\n')
    run(data, tmp_path / 'out', held_out=str(names))
    for index in (0, 3):
        (data / f'masks/{index}.png').unlink()
    run(data, tmp_path / 'without')
    for index in range(9):
        mask = f'masks/{index}.png'
        assert (tmp_path / 'out' / mask).read_bytes() == (tmp_path / 'without' / mask).read_bytes()


def test_a_labelled_image_is_predicted_by_the_others(data, tmp_path):
    wrong = 1 - np.asarray(Image.open(data / 'masks/2.png'))
    save(data / 'masks/2.png', wrong)
    result = run(data, tmp_path / 'out')
    assert result.fit.fitted.judged[0].name == '2' and result.fit.fitted.judged[0].is_doubtful
    predicted = np.asarray(Image.open(tmp_path / 'out/masks/2.png'))
    assert (predicted == 1 - wrong).mean() > 0.9


def test_a_second_call_looks_at_new_photos_alone(data, tmp_path, looked_at):
    out = tmp_path / 'out'
    run(data, out)
    looked_at.clear()
    assert run(data, out).counts.skipped == 9 and not looked_at
    save(data / 'masks/5.png', (np.arange(50) >= 30).astype(np.uint8)[None].repeat(40, 0))
    save(data / 'images/new.png', np.full((40, 50, 3), (210, 20, 20), np.uint8))
    assert run(data, out).counts.written == 10 and len(looked_at) == 1
    # another encoder predicts otherwise
    request = PreviewRequest(str(data), CLASSES, str(out))
    assert preview(request, dict(backbone=dict(type='other'))).counts.written == 10


def test_other_photos_are_predicted(data, tmp_path):
    save(tmp_path / 'photos/a/b.png', np.full((30, 20, 3), (20, 20, 220), np.uint8))
    (tmp_path / 'photos/broken.png').write_bytes(b'no image')
    result = run(data, tmp_path / 'out', images=str(tmp_path / 'photos'))
    assert result.counts.written == 1 and 'broken.png' in result.counts.failed[0]
    assert (np.asarray(Image.open(tmp_path / 'out/masks/a/b.png')) == 1).all()


@pytest.mark.parametrize(
    ('spoil', 'match'),
    [
        (lambda data: [mask.unlink() for mask in data.glob('masks/*')], 'masks: .*next-batch'),
        (lambda data: [save(mask, np.zeros((40, 50), np.uint8)) for mask in data.glob('masks/*')],
         'masks: .*red'),
        (lambda data: (data / 'images/1.png').write_bytes(b'no image'), r'1\.png'),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_named(data, tmp_path, spoil, match):
    spoil(data)
    with pytest.raises(UserError, match=match):
        run(data, tmp_path / 'out')


def test_the_folder_of_others_is_left_alone(data, tmp_path):
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/mine.txt').write_text('mine')
    with pytest.raises(UserError, match='out'):
        run(data, tmp_path / 'out')
    assert [path.name for path in (tmp_path / 'out').iterdir()] == ['mine.txt']


def batch(data, out, **options):
    fit = FolderFit(PreviewRequest(str(data), CLASSES, str(out)), MODEL)
    return preview_batch(BatchRequest(str(out), **options), fit)


def test_the_least_certain_photos_are_next(data, tmp_path):
    grey = np.random.default_rng(9).integers(90, 120, (40, 50, 3), np.uint8)
    save(data / 'images/grey.png', grey)
    result = batch(data, tmp_path / 'b', number=1, format='coco')
    # far from all that is labelled, and nothing like either class
    assert [image.name.as_posix() for image in result.images] == ['grey.png']
    assert (tmp_path / 'b/images/grey.png').is_file()
    assert (
        json.loads((tmp_path / 'b/coco.json').read_text())['images'][0]['file_name'] == 'grey.png'
    )
    assert 'import-masks' in result.following[-3] and 'preview' in result.following[-2]
    with pytest.raises(UserError, match='holds a batch already'):
        batch(data, tmp_path / 'b')


def test_labelled_and_left_out_images_are_no_candidates(data, tmp_path):
    save(tmp_path / 'seen/x.png', np.asarray(Image.open(data / 'images/6.png')))
    result = batch(data, tmp_path / 'b', number=9, without=[str(tmp_path / 'seen')])
    assert {image.name.stem for image in result.images} == {'5', '7', '8'}


def test_the_loop_needs_no_training(data, tmp_path, monkeypatch, capsys, refused):
    monkeypatch.setattr(base_model, 'frozen_model', lambda *_: MODEL)
    write_table(data, ClassTable(dict(zip(CLASSES, PALETTE)), None))
    preview_data = 'preview', data, '--out', tmp_path / 'p', '--format', 'coco'
    assert world.run_tool(*preview_data) == 0
    assert '5 masks' in capsys.readouterr().out and (tmp_path / 'p/coco.json').is_file()
    assert world.run_tool('next_batch', data, '-n', 2, '--out', tmp_path / 'b') == 0
    following = capsys.readouterr().out.rpartition('Next:\n')[2].splitlines()[0]
    import_masks = shlex.split(following.partition('import-masks ')[2])
    for path in (tmp_path / 'b/masks').iterdir():  # corrected by a person
        with Image.open(path) as mask:
            mask.putpixel((0, 0), 2)
            mask.save(path)
    assert not world.run_tool('import_masks', *import_masks)
    assert world.run_tool(*preview_data) == 0
    assert '7 masks' in capsys.readouterr().out
    (data / 'images/9.png').write_bytes(b'no image')
    assert world.run_tool(*preview_data) == 1
    for option in (['--cfg-options', 'a=1'], ['--domain', 'x'], ['--launcher', 'slurm']):
        assert option[0] in refused('next_batch', data, '--out', tmp_path / 'c', *option)
