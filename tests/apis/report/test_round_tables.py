"""Rounds of labelling, by what the trainings recorded."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import world

from mmseg_cct.apis.report.round_tables import round_tables
from mmseg_cct.apis.run import Run
from mmseg_cct.preflight.labeled_record import LABELS, Labels, record_labels

CLASSES = ('ground', 'thing', 'other')
IOU = {
    'a': np.array([0.8, 0.4, np.nan]),
    'b': np.array([0.9, 0.3, np.nan]),
    'c': np.array([0.9, 0.6, 0.3]),
}


@pytest.fixture
def runs_of(tmp_path):
    """Makes runs by the numbers of the images that they were labelled with."""
    masks = [[0, 0, 1, 1], [0, 0, 0, 255], [2, 2, 2, 1]]
    for kind in ('images', 'masks'):
        (tmp_path / kind).mkdir()
    for index, ids in enumerate(masks):
        cv2.imwrite(str(tmp_path / f'images/{index}.png'), np.zeros((2, 4, 3), np.uint8))
        cv2.imwrite(str(tmp_path / f'masks/{index}.png'), np.uint8([ids, ids]))
    config = world.cct_config(tmp_path)

    def make(**labeled):
        runs = []
        for name, numbers in labeled.items():
            (tmp_path / name).mkdir()
            paths = [f'{tmp_path}/images/{i}.png' for i in numbers]
            record_labels(tmp_path / name, Labels(paths, 0))
            runs.append(Run(config, str(tmp_path / name / 'iter_1.pth'), name))
        return runs

    return make


def test_each_round_has_its_labels_and_gains(runs_of):
    rounds, classes = round_tables(runs_of(a=[0], b=[0, 1], c=[0, 1, 2]), IOU, CLASSES)
    assert rounds.rows == [
        ['a', '1', '', '60.0', ''],
        ['b', '2', '1', '60.0', '+0.0'],
        ['c', '3', '1', '60.0', '+0.0'],
    ]
    assert classes.header == [
        *('class', 'pixels of a', 'pixels added in b', 'b − a', 'pixels added in c', 'c − b')
    ]
    assert classes.rows == [
        ['ground', '50.0 %', '100.0 %', '+10.0', '0.0 %', '+0.0'],
        ['thing', '50.0 %', '0.0 %', '−10.0', '25.0 %', '+30.0'],
        ['other', '0.0 %', '0.0 %', '', '75.0 %', ''],
    ]


def test_other_runs_are_no_rounds(runs_of, tmp_path):
    runs = runs_of(a=[0, 1], b=[0, 1], c=[0, 2])
    for chosen in (runs[:1], runs[:2], [runs[0], runs[2]]):
        assert round_tables(chosen, IOU, CLASSES) == []
    Path(tmp_path, 'a', LABELS).unlink()  # of before the record
    assert round_tables(runs[:2], IOU, CLASSES) == []
