import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from mmseg_cct.datasets.files.images import read_image
from mmseg_cct.pseudo_labels import make_pseudo_labels, writer
from mmseg_cct.pseudo_labels.cam import load_classifier
from mmseg_cct.pseudo_labels.labels_from_maps import labels_from_maps
from mmseg_cct.pseudo_labels.settings import read_settings
from mmseg_cct.utils.processes import SharedImages


def make(weak, **kwargs):
    options = dict(dict(with_crf=False, workers=0), **kwargs)
    return make_pseudo_labels(weak.load(), weak.checkpoint, weak.out, **options)


def labels_of(weak, name, folder='labels'):
    with Image.open(Path(weak.out, folder, f'{name}.png')) as image:
        assert image.mode == 'P'
        assert image.getpalette()[: 3 * len(weak.palette)] == np.ravel(weak.palette).tolist()
        return np.array(image)


def test_writes_what_thresholds_make_of_the_maps(weak):
    assert make(weak).written == 4
    settings = read_settings(weak.load())
    model = load_classifier(weak.load(), weak.checkpoint, 'cpu')
    for image in settings.images:
        pixels = read_image(image.path)
        (maps,) = writer.maps_of(model, settings, [(image, pixels)])
        ids = [settings.label_ids[index] for index in image.class_ids]
        expected = labels_from_maps(maps, ids, 0, settings.thresholds)
        assert np.array_equal(labels_of(weak, image.name), expected)
    assert set(np.unique(labels_of(weak, 'a'))) <= {0, 1, 255}
    assert (labels_of(weak, 'd') == 0).all()  # no class: background
    assert not Path(weak.out, 'before_crf').exists()


def test_a_second_run_does_only_what_is_missing(weak):
    make(weak)
    Path(weak.out, 'labels/more/c.png').unlink()
    os.utime(weak.images / 'b.jpg', ns=(1, 2))  # replaced
    labels = json.loads((weak.root / 'labels.json').read_text())
    labels['data_list'][3]['gt_label'] = [0]  # corrected
    (weak.root / 'labels.json').write_text(json.dumps(labels))
    kept = Path(weak.out, 'labels/a.png').stat().st_mtime_ns
    summary = make(weak)
    assert (summary.written, summary.skipped) == (3, 1)
    assert Path(weak.out, 'labels/a.png').stat().st_mtime_ns == kept
    assert make(weak).skipped == 4


def test_images_of_all_sizes_go_into_the_classifier_at_its_width_and_height(weak):
    config, sizes = weak.load(), []
    config.pseudo_labels.input_size = (40, 16)
    settings, model = read_settings(config), load_classifier(config, weak.checkpoint, 'cpu')
    model.data_preprocessor.register_forward_pre_hook(
        lambda _, args: sizes.append(tuple(args[0]['inputs'].shape))
    )
    (batch,) = writer.batches(SharedImages(settings.images), settings, 8)
    maps = writer.maps_of(model, settings, batch)
    assert sizes == [(4, 3, 16, 40)]
    assert [class_maps.shape[1:] for class_maps in maps] == [(24, 32), (24, 32), (24, 32), (20, 26)]
