"""Masks that a teacher draws: when they are stale, and what they are counted by."""

import os
import shutil

import cv2
import numpy as np
import pytest
import world
from mmengine.config import Config

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels.teacher_masks import Unlabeled, draw_masks
from mmseg_cct.studies.self_training import SelfTraining

pytestmark = pytest.mark.slow


def test_masks_are_stale_once_an_image_changes(teacher, tmp_path, monkeypatch, caplog):
    shutil.copytree(teacher / 'images', tmp_path / 'images')
    config = Config.fromfile(teacher / 'setting.py')
    config.train_dataloader.dataset.unlabeled.image_dir = str(tmp_path / 'images')
    config.dump(tmp_path / 'setting.py')
    file, setting = teacher / 'teacher/iter_3.pth', str(tmp_path / 'setting.py')
    training = SelfTraining(str(file), setting, {}, tmp_path / 'out', tta=False, held_out=0)
    assert not training.is_drawn(1)
    training.draw(1)
    assert training.is_drawn(1)
    for image in (tmp_path / 'images').iterdir():
        os.utime(image, ns=(1, 2))
    assert not training.is_drawn(1)
    (training.folder(1) / 'train').mkdir()
    told = []
    monkeypatch.setattr('mmseg_cct.studies.self_training.warn', told.append)
    assert training.is_drawn(1) and 'images have changed since their masks were drawn' in told[0]


def test_a_damaged_record_is_one_line(teacher, tmp_path):
    file, setting = teacher / 'teacher/iter_3.pth', teacher / 'setting.py'
    training = SelfTraining(str(file), str(setting), {}, tmp_path / 'out', tta=False, held_out=1)
    training.draw(1)
    masks = training.folder(1) / 'masks'
    assert '| right among kept |' in (masks / 'report.md').read_text()
    (masks / 'masks.json').write_text('{}')
    with pytest.raises(UserError, match=r'masks\.json: damaged, .*: remove it, and they are drawn'):
        training.prepare(1)
    (masks / 'masks.json').unlink()
    assert training.draw(1).skipped and training.prepare(1)


def draw(config, teacher, image, name='iter_6.pth'):
    file, out = str(teacher / 'teacher' / name), str(image.parents[1] / 'out')
    unlabeled = Unlabeled(str(image.parent), {image.stem: str(image)}, world.CLASSES)
    return draw_masks(config, file, unlabeled, out, tta=False)


def test_images_are_read_as_the_teacher_reads_them(teacher, tmp_path):
    config, image = Config.fromfile(teacher / 'setting.py'), tmp_path / 'images/deep.png'
    image.parent.mkdir()
    pixels = np.random.default_rng(0).integers(0, 4096, (24, 32, 3), np.uint16)
    cv2.imwrite(str(image), pixels)
    assert 'deep.png' in draw(config, teacher, image).failed[0]  # 16 bits
    loader = dict(type='LoadChannels', value_range=(0, 4095))
    config.test_dataloader.dataset.pipeline[0] = loader
    shutil.rmtree(tmp_path / 'out')
    assert draw(config, teacher, image).failed == []
    assert draw(config, teacher, image).skipped == 1
    assert (tmp_path / 'out/pictures.png').is_file()


def test_a_teacher_of_other_classes_is_refused(teacher, tmp_path, capsys):
    config = Config.fromfile(teacher / 'setting.py')
    for part in config.train_dataloader.dataset.values():
        if isinstance(part, dict):
            part.update(classes=('ground', 'thing'), palette=world.PALETTE[:2])
    config.model.decode_head.num_classes = config.model.auxiliary_head.num_classes = 2
    config.dump(tmp_path / 'other.py')
    arguments = ('--student', tmp_path / 'other.py', '--out', tmp_path / 'out', '--held-out', '0')
    with pytest.raises(SystemExit):
        world.run_tool('self_train', teacher / 'teacher', *arguments)
    assert 'labels 3 classes (ground, thing, other, ...); expected' in capsys.readouterr().err


def test_masks_of_a_replaced_image_or_another_teacher_are_never_kept(teacher, tmp_path):
    config, image = Config.fromfile(teacher / 'setting.py'), tmp_path / 'images/a.png'
    image.parent.mkdir()
    shutil.copy(next((teacher / 'val_images').iterdir()), image)
    assert [draw(config, teacher, image).written for _ in range(2)] == [1, 0]
    os.utime(image, ns=(1, 2))
    assert draw(config, teacher, image).written == 1
    with pytest.raises(UserError, match='was made with checkpoint='):
        draw(config, teacher, image, 'iter_3.pth')
