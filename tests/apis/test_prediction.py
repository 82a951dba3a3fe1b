import json
import shutil

import numpy as np
import pytest
import torch
import world
from mmseg.apis import inference_model
from PIL import Image

from mmseg_cct.apis.prediction import predict_images
from mmseg_cct.apis.run import Run
from mmseg_cct.engine.labels_record import read_labels
from mmseg_cct.errors import UserError


@pytest.fixture
def photos(tmp_path):
    """Images of several sizes and formats, one in a subfolder."""
    sizes = {'a.jpg': (31, 57), 'b.png': (64, 20), 'more/c.bmp': (40, 40)}
    folder = world.write_photos(tmp_path / 'photos', sizes)
    grey = np.random.default_rng(0).integers(0, 255, (9, 11), dtype=np.uint8)
    Image.fromarray(grey).save(folder / 'grey.png')
    return folder


def predict(trained, photos, out, **kwargs):
    arguments = {'device': 'cpu', **kwargs}
    run = Run.open(trained.file, trained.checkpoint, options=arguments.pop('options', None))
    return predict_images(run, str(photos), str(out), **arguments)


def test_masks_are_the_models_predictions_and_overlays_blend_them(trained, photos, tmp_path):
    out = tmp_path / 'out'
    summary = predict(trained, photos, out, opacity=0.25)
    assert (summary.written, summary.skipped, summary.failed) == (4, 0, [])
    for path in photos.rglob('*.*'):
        name = path.relative_to(photos).with_suffix('.png')
        image, mask = Image.open(path), Image.open(out / 'masks' / name)
        assert mask.mode == 'P' and mask.size == image.size
        assert np.array(mask).max() < 3
        assert mask.getpalette()[:9] == np.ravel(trained.palette).tolist()
        overlay = Image.open(out / 'overlays' / name)
        assert overlay.mode == 'RGB' and overlay.width == image.width
        assert overlay.height > image.height  # the classes that it shows are below
        blend = 0.75 * np.array(image.convert('RGB'), float)
        blend += 0.25 * np.array(trained.palette)[np.array(mask)]
        assert np.abs(np.array(overlay, float)[: image.height] - blend).max() <= 0.5
    assert Image.open(out / 'legend.png').width == 640
    assert read_labels(out) == read_labels(trained.work_dir)
    model = Run.open(trained.file, trained.checkpoint).load_model('cpu')
    expected = inference_model(model, str(photos / 'b.png')).pred_sem_seg.data[0]
    assert np.array_equal(np.array(Image.open(out / 'masks/b.png')), expected)


def test_a_second_run_does_what_is_missing_or_was_replaced(trained, photos, tmp_path, messages):
    out = tmp_path / 'out'
    predict(trained, photos, out)
    kept, replaced = out / 'masks' / 'a.png', out / 'masks' / 'b.png'
    before = kept.stat().st_mtime_ns, replaced.read_bytes()
    (out / 'overlays' / 'more' / 'c.png').unlink()
    (photos / 'b.png').write_bytes((photos / 'grey.png').read_bytes())
    (photos / 'grey.png').unlink()
    (photos / 'more/x.heic').touch()
    summary = predict(trained, photos, out)
    assert (summary.written, summary.skipped) == (2, 1)
    assert kept.stat().st_mtime_ns == before[0]
    assert replaced.read_bytes() == (out / 'masks' / 'grey.png').read_bytes() != before[1]
    (left_out,) = messages
    assert f'{photos}/more/x.heic' in left_out


def test_confidence_is_the_probability_of_the_class_and_masks_stay(trained, photos, tmp_path):
    predict(trained, photos, tmp_path / 'plain')
    out = tmp_path / 'out'
    predict(trained, photos, out, confidence=True)
    for name in ('a', 'b', 'more/c', 'grey'):
        mask = (out / 'masks' / f'{name}.png').read_bytes()
        assert mask == (tmp_path / 'plain/masks' / f'{name}.png').read_bytes()
    assert not (tmp_path / 'plain/confidence').exists()
    model = Run.open(trained.file, trained.checkpoint).load_model('cpu')
    logits = inference_model(model, str(photos / 'b.png')).seg_logits.data
    found = np.array(Image.open(out / 'confidence/b.png'))
    assert found.dtype == np.uint8
    assert np.abs(found - 255 * logits.softmax(0).amax(0).numpy()).max() < 0.6

    def rows():
        header, *lines = (out / 'predict.csv').read_text().splitlines()
        assert header == 'confidence,image'
        return {path: float(mean) for mean, path in (line.split(',') for line in lines)}

    means = rows()
    assert list(means.values()) == sorted(means.values()) and len(means) == 4
    assert means[str(photos / 'b.png')] == pytest.approx(found.mean() / 255, abs=1e-4)
    # an unreadable image has no row, and a run that was stopped before its table gets it
    (out / 'predict.csv').unlink()
    (photos / 'more/c.bmp').write_bytes(b'')
    assert len(predict(trained, photos, out, confidence=True).failed) == 1
    assert rows() == {path: mean for path, mean in means.items() if 'c.bmp' not in path}
    (out / 'predict.csv').unlink()
    (photos / 'more/c.bmp').unlink()
    assert predict(trained, photos, out, confidence=True).written == 0 and len(rows()) == 3
    # all files of a folder are made in the same way
    with pytest.raises(UserError) as caught:
        predict(trained, photos, out)
    assert caught.value.problems[0].key == '--out'


@pytest.mark.parametrize('tool', ['predict', 'test'])
def test_an_image_whose_logits_are_not_finite_is_named(trained, tmp_path, refused, tool):
    """Finite weights can do so; NaN would become class 0."""
    work_dir = shutil.copytree(trained.work_dir, tmp_path / 'work')
    content = trained.load(work_dir / 'iter_6.pth')
    content['state_dict']['neck.bottleneck.bn.running_var'].fill_(-1)
    torch.save(content, work_dir / 'iter_6.pth')
    images = (trained.data / 'val_images', '--out', tmp_path / 'out') if tool == 'predict' else ()
    assert 'v0.png: ' in refused(tool, work_dir, *images)


def test_masks_become_annotations_for_a_tool_and_edited_ones_stay(
    trained, photos, tmp_path, refused, monkeypatch
):
    (photos / 'broken.png').write_bytes(b'')
    out = tmp_path / 'out'
    arguments = trained.file, trained.checkpoint, photos, '--out', out, '--device', 'cpu'
    assert trained.run('predict', *arguments, '--format', 'labelme') == 1  # one is broken
    assert len(list(out.rglob('labelme/**/*.json'))) == 4
    content = json.loads((out / 'labelme/more/c.json').read_text())
    assert (out / 'labelme/more' / content['imagePath']).resolve() == photos / 'more/c.bmp'
    assert {shape['label'] for shape in content['shapes']} <= {'ground', 'thing', 'other'}

    (photos / 'broken.png').unlink()
    (out / 'labelme/a.json').write_text('corrected')
    monkeypatch.delattr(Run, 'load_model')  # nothing is predicted again
    assert f'error: {out / "labelme/a.json"}: ' in refused(
        'predict', *arguments, '--format', 'labelme'
    )
    assert (out / 'labelme/a.json').read_text() == 'corrected'
    assert trained.run('predict', *arguments, '--format', 'coco') == 0
    assert len(json.loads((out / 'coco.json').read_text())['images']) == 4
