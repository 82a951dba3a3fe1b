import numpy as np
from folders import save

from mmseg_cct.pseudo_labels import agreement_table
from mmseg_cct.pseudo_labels.settings import read_settings


def test_an_ignored_label_is_missed_and_an_ignored_truth_says_nothing(weak):
    config = weak.load()
    settings = read_settings(config)
    labels = np.array([[0, 0, 1, 1], [255, 1, 2, 255]], np.uint8)
    truth = np.array([[0, 1, 1, 1], [1, 255, 1, 0]], np.uint8)
    save(weak.root / 'out/labels/a.png', labels)  # no other image has labels
    save(weak.root / 'masks/a.png', truth)
    rows = agreement_table(settings, 'out', ['labels']).splitlines()
    cells = [[cell.strip() for cell in row.split('|')[1:-1]] for row in rows if '|' in row]
    assert cells == [
        ['class', 'labels: IoU, %', 'labels: precision, %'],
        ['ground', '33.3', '50.0'],  # 1 right, 2 labelled, 2 true of which one is ignored
        ['thing', '40.0', '100.0'],  # 2 right, 2 labelled, 5 true
        ['other', '0.0', '0.0'],  # 1 labelled, none true
        ['mean', '24.4', '50.0'],
    ]
    config.pseudo_labels.segmentation.reduce_zero_label = True  # as MMSeg maps the truth
    assert 'ground |      20.0 ' in agreement_table(read_settings(config), 'out', ['labels'])
