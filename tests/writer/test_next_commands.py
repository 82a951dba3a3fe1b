"""What an import says to run next, by what there is."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from mmseg_cct.datasets.folder_summary import FolderSummary
from mmseg_cct.writer.next_commands import commands_after_import, next_commands

CONFIG = 'configs/my-data/cct_mbv2_my-data.py'


def summary(num_labeled=2, unlabeled=1):
    labels = {str(n): frozenset({0}) for n in range(num_labeled)}
    return FolderSummary(labels, unlabeled, {}, (8, 8), np.zeros(2), 0, {})


@pytest.fixture
def commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def words(classes='ab', **state):
        lines = commands_after_import(Path('my data'), summary(**state), list(classes))
        return [shlex.split(line.partition('mmseg')[2])[1:] for line in lines]

    return words


def test_a_folder_without_a_config_gets_one(commands):
    assert commands() == [['new-config', 'my data']]
    assert commands(unlabeled=0) == [['new-config', 'my data', '--method', 'supervised']]
    assert commands(num_labeled=1) == commands(classes='a') == []


def test_a_config_of_the_same_classes_is_trained_again(commands):
    Path(CONFIG).parent.mkdir(parents=True)
    Path(CONFIG).write_text("classes = ('a', 'b')")
    assert commands() == [['train', CONFIG]]
    Path('work_dirs/cct_mbv2_my-data').mkdir(parents=True)
    assert commands() == [['train', CONFIG, '--work-dir', 'work_dirs/cct_mbv2_my-data-round2']]
    assert commands(unlabeled=0) == [['train', CONFIG, '--method', 'supervised']]
    assert commands(classes='abc') == [['new-config', 'my data']]


def test_few_labels_start_from_a_preview():
    config_path = Path('cct-strong_mbv2_mine.py')
    plain = next_commands(config_path, 'cct-strong', 'preview')
    started = next_commands(config_path, 'cct-strong', 'preview', starts_from_it=True)
    assert plain[0] == started[0] == 'preview' and plain[2] == started[2]
    assert started[1] == f'{plain[1]} --method self-training --weak-masks preview/masks'
    assert 'self-training=work_dirs/self-training_mbv2_mine' in shlex.split(started[3])
