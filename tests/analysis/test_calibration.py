"""Calibration of a trained model: against naive counts."""

import json
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from mmengine.config import Config
from mmseg.registry import DATASETS
from world import run_tool

from mmseg_cct.analysis.calibration import write_calibration
from mmseg_cct.analysis.ranking import disagreement, load_training_model
from mmseg_cct.config.compose import read_method
from mmseg_cct.errors import UserError
from mmseg_cct.evaluation.sureness import confidence_of


def calibrate(tiny_cct, out, **kwargs):
    options = dict(split='test', device='cpu', **kwargs)
    return write_calibration(tiny_cct.config, tiny_cct.checkpoint, str(out), **options)


def test_counts_are_those_of_the_models_own_predictions(tiny_cct, tmp_path, checkpoints_read):
    shown = calibrate(tiny_cct, tmp_path / 'out', seed=3)
    assert checkpoints_read == [tiny_cct.checkpoint]
    config = Config.fromfile(tiny_cct.config)
    model = load_training_model(config, tiny_cct.checkpoint, 'cpu')
    dataset = DATASETS.build(config.test_dataloader.dataset)
    found = {}
    for item in dataset:
        flips, labels, _ = disagreement(model, item, seed=3)
        truth = item['data_samples'].gt_sem_seg.data[0]
        agreed = (flips == 0).sum(0)
        for k, right in zip(agreed.flatten().tolist(), (labels == truth).flatten().tolist()):
            pixels, rights = found.get(k, (0, 0))
            found[k] = pixels + 1, rights + right
    k = model.auxiliary_head.num_decoders
    agreement = shown['agreement']
    np.testing.assert_allclose(agreement['scores'], [each / k for each in sorted(found)])
    assert list(zip(agreement['pixels'], agreement['right'])) == [
        found[each] for each in sorted(found)
    ]
    assert sum(shown['confidence']['pixels']) == 4 * 40 * 56
    assert sum(shown['confidence']['right']) == sum(agreement['right'])

    assert shown['images'] == 4 and 0 < shown['confidence']['separation'] < 1
    assert json.loads((tmp_path / 'out/calibration.json').read_text()) == shown
    assert (tmp_path / 'out/calibration.png').read_bytes().startswith(b'\x89PNG')


def test_ignored_pixels_do_not_count(tiny_cct, tmp_path):
    shown = calibrate(tiny_cct, tmp_path / 'all')
    config = Config.fromfile(tiny_cct.config)
    steps = config.test_dataloader.dataset.pipeline
    # pads the mask with 255
    padded = [dict(step) for step in (*steps[:-1], dict(type='Pad', size=(64, 48)), steps[-1])]
    options = {'test_dataloader.dataset.pipeline': padded}
    other = calibrate(tiny_cct, tmp_path / 'padded', options=options)
    assert sum(other['agreement']['pixels']) == sum(shown['agreement']['pixels']) == 4 * 40 * 56


def test_what_is_missing_is_named(tiny_cct, tmp_path):
    options = dict(val_dataloader=None)
    with pytest.raises(UserError, match=r'val_dataloader\.dataset: missing; expected a labelled'):
        write_calibration(
            tiny_cct.config, tiny_cct.checkpoint, str(tmp_path), options=options, device='cpu'
        )
    steps = [dict(type='LoadImageFromFile'), dict(type='PackSegInputs')]
    with pytest.raises(UserError, match='has no masks; expected labelled images'):
        calibrate(tiny_cct, tmp_path / 'out', options={'test_dataloader.dataset.pipeline': steps})


@pytest.mark.parametrize(
    ('classes', 'message'),
    [
        (('road', 'sky', 'car'), 'the checkpoint: class 0 is sky, in the data set road; expected'),
        (('sky', 'road', 'car', 'x'), 'decode_head.num_classes=3: expected 4, the classes of test'),
    ],
)
def test_other_classes_than_the_models_are_named(tiny_cct, tmp_path, classes, message):
    options = {
        f'test_dataloader.dataset.{key}': value
        for key, value in dict(classes=classes, palette=None).items()
    }
    with pytest.raises(UserError, match=re.escape(message)):
        calibrate(tiny_cct, tmp_path / 'out', options=options)


def test_bad_data_are_named(tiny_cct, tmp_path):
    shutil.copytree(tiny_cct.images, tmp_path / 'images')
    shutil.copytree(Path(tiny_cct.images).with_name('masks'), tmp_path / 'masks')
    options = {'test_dataloader.dataset.data_root': str(tmp_path)}
    cv2.imwrite(str(tmp_path / 'masks/1.png'), np.full((40, 56), 200, np.uint8))
    with pytest.raises(UserError, match=r'test_dataloader\.dataset: .*1\.png: label id 200'):
        calibrate(tiny_cct, tmp_path / 'out', options=options)
    image = tmp_path / 'images/0.png'
    image.write_bytes(image.read_bytes()[:600])
    with pytest.raises(UserError, match=r'test_dataloader\.dataset: .*0\.png'):
        calibrate(tiny_cct, tmp_path / 'out', options=options)


def test_an_image_that_the_pipeline_cannot_take_is_named(tiny_cct, tmp_path):
    for kind in ('images', 'masks'):
        (tmp_path / kind).mkdir()
        cv2.imwrite(str(tmp_path / kind / '0.png'), np.zeros((3, 2000), np.uint8))
    load, *rest = Config.fromfile(tiny_cct.config).test_dataloader.dataset.pipeline
    resize = dict(type='Resize', scale=(56, 40), keep_ratio=True)  # no row is left
    options = {
        'test_dataloader.dataset.data_root': str(tmp_path),
        'test_dataloader.dataset.pipeline': [dict(load), resize, *map(dict, rest)],
    }
    with pytest.raises(
        UserError, match=r'0\.png: .*test_dataloader\.dataset\.pipeline does not run'
    ):
        calibrate(tiny_cct, tmp_path / 'out', options=options)


def test_a_model_without_auxiliary_decoders_has_no_agreement(tiny_cct, tmp_path):
    options = {'model.type': 'EncoderDecoder', 'model.auxiliary_head': None}
    found = calibrate(tiny_cct, tmp_path / 'out', options=options)
    expected = calibrate(tiny_cct, tmp_path / 'cct')
    assert found.keys() == {'images', 'confidence', 'pseudo_labels'}
    assert found['confidence'] == expected['confidence']
    assert found['pseudo_labels'] == expected['pseudo_labels']


def test_a_threshold_out_of_range_is_named(tiny_cct, tmp_path):
    with pytest.raises(UserError, match=r'--threshold 1\.5: expected a confidence in \[0, 1\]'):
        calibrate(tiny_cct, tmp_path, threshold=1.5)


def test_the_command_line(tiny_cct, tmp_path, capsys):
    arguments = tiny_cct.config, tiny_cct.checkpoint, '--split', 'test', '--out', tmp_path / 'out'
    options = '--threshold', '0.3'
    assert run_tool('analyze_calibration', *map(str, (*arguments, *options))) in (0, None)
    confidence, agreement, *table, wrote = capsys.readouterr().out.splitlines()[-9:]
    assert re.fullmatch(r'confidence: separation 0.\d{3}, calibration error 0.\d{3}', confidence)
    assert re.fullmatch(r'agreement: separation 0.\d{3}, calibration error 0.\d{3}', agreement)
    assert table[0] == '| true class | of confidence 0.3 | of these right |'
    assert [line.split(' ')[1] for line in table[2:]] == ['sky', 'road', 'car', 'all']
    record = json.loads((tmp_path / 'out/calibration.json').read_text())['pseudo_labels']
    assert f'| {record["used"]:.0%} | {record["right"]:.0%} |' in table[-1]
    assert wrote == f'wrote {tmp_path}/out'


def test_the_classes_that_are_precise_enough_make_a_method(tiny_cct, tmp_path):
    shown = calibrate(tiny_cct, tmp_path / 'out', precision=1.0)
    rows = shown['teaches'].splitlines()[2:]
    overlay = read_method(str(tmp_path / 'out' / 'thresholds.py'))
    threshold = overlay['model']['loss_strong']['threshold']
    assert threshold['type'] == 'ClassThreshold' and overlay['model']['type'] == 'CCTPlusSegmentor'
    for value, row in zip(threshold['values'], rows, strict=True):
        assert ('| none |' in row) == (value is None)
        assert value is None or row.endswith('| 100.0% |')
    lost = [
        name for name, value in zip(('sky', 'road', 'car'), threshold['values']) if value is None
    ]
    assert shown['teach_nothing'] == lost
    with pytest.raises(UserError, match=r'--precision 1\.5: expected a share'):
        calibrate(tiny_cct, tmp_path / 'out', precision=1.5)


def test_thresholds_are_as_fine_as_the_levels(tiny_cct, tmp_path, monkeypatch):
    cuts = np.array([16, 251, 252])
    monkeypatch.setattr('mmseg_cct.analysis.calibration.cuts_by_precision', lambda *_: cuts)
    calibrate(tiny_cct, tmp_path / 'out', precision=0.9)
    overlay = read_method(str(tmp_path / 'out' / 'thresholds.py'))
    values = overlay['model']['loss_strong']['threshold']['values']
    np.testing.assert_allclose(values, [confidence_of(cut) for cut in cuts], rtol=0, atol=1e-7)
