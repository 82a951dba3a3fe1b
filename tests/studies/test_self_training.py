"""A whole self-training on tiny images, and its parts that need no training."""

import json
import os
import shutil

import cv2
import numpy as np
import pytest
import world
from mmengine.config import Config
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels.teacher_masks import MasksRecord, Unlabeled, draw_masks
from mmseg_cct.studies.self_training import SelfTraining, with_masks
from mmseg_cct.utils.files import write_record

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A teacher with two checkpoints, and the setting that it was trained by."""
    root = tmp_path_factory.mktemp('self_training')
    world.write_images(root)
    config = world.cct_config(root)
    flips = [dict(type='RandomFlip', prob=p) for p in (0.0, 1.0)]
    views = [flips, [world.LOAD_MASK], [dict(type='PackSegInputs')]]
    config.tta_pipeline = [world.LOAD_IMAGE, dict(type='TestTimeAug', transforms=views)]
    config.default_hooks.checkpoint.interval = 3
    config.custom_hooks = [dict(type='IterationSeedHook')]
    config.dump(root / 'setting.py')
    world.run_tool('train', root / 'setting.py', '--work-dir', root / 'teacher')
    return root


@pytest.fixture
def executed(monkeypatch):
    """Trains and tests students in this process; lists the trainings."""
    trainings = []

    def execute(runs, tools, slots, processes):
        for run in runs:
            if run.next_step() == 'train':
                trainings.append(run.name)
                world.run_tool('train', run.config, '--work-dir', run.folder / 'train', '--resume')
                world.run_tool(
                    'test', run.config, run.checkpoint, '--work-dir', run.folder / 'test'
                )
        return []

    monkeypatch.setattr('mmseg_cct.studies.execution.execute', execute)
    return trainings


def self_train(root, *args):
    common = ('--student', root / 'setting.py', '--out', root / 'out')
    return world.run_tool('self_train', root / 'teacher', *common, *args)


def test_two_rounds_of_masks_and_students(trained, executed, capsys):
    arguments = ('--rounds', '2', '--drop', '0.4')
    assert self_train(trained, *arguments) == 0
    said = capsys.readouterr().out
    assert '| predicted class | pixels | of these teach | surer than | right |' in said
    out = trained / 'out'
    assert '| 2 | 5 |' in (out / 'self_training.md').read_text()
    masks = out / 'round1/masks'
    assert (masks / 'pictures.png').is_file()
    record = json.loads((masks / 'masks.json').read_text())
    for name, sure in record['sure'].items():
        drawn, seen, levels = (
            np.array(Image.open(masks / folder / f'{name}.png'))
            for folder in ('labels', 'predictions', 'sureness')
        )
        unsure = levels < np.array(record['cuts'])[seen]
        assert (drawn == np.where(unsure, 255, seen)).all()
        assert sure == pytest.approx(1 - unsure.mean())

    # the first student learns from the surer half of the images, the second from all
    first, second = (Config.fromfile(out / f'round{number}/config.py') for number in (1, 2))
    shares = list(record['sure'].values())
    surest = sorted(range(5), key=lambda index: -shares[index])[:2]
    assert first.train_dataloader.dataset.unlabeled.indices == sorted(surest)
    assert 'indices' not in second.train_dataloader.dataset.unlabeled
    assert first.model.type == 'SelfTrainingSegmentor'

    # a second call finds all done; other settings are refused
    assert executed == ['student 1 of 2', 'student 2 of 2']
    assert self_train(trained, *arguments) == 0 and len(executed) == 2
    with pytest.raises(SystemExit):
        self_train(trained, '--rounds', '2', '--drop', '0.3')
    assert 'out was made with dropped=0.4' in capsys.readouterr().err
    os.utime(trained / 'teacher/iter_6.pth', (1, 1))  # another teacher
    with pytest.raises(SystemExit):
        self_train(trained, *arguments)
    assert 'made with checkpoint=' in capsys.readouterr().err


def test_masks_are_stale_once_an_image_changes(trained, tmp_path, monkeypatch, caplog):
    shutil.copytree(trained / 'images', tmp_path / 'images')
    config = Config.fromfile(trained / 'setting.py')
    config.train_dataloader.dataset.unlabeled.image_dir = str(tmp_path / 'images')
    config.dump(tmp_path / 'setting.py')
    teacher, setting = trained / 'teacher/iter_3.pth', str(tmp_path / 'setting.py')
    training = SelfTraining(str(teacher), setting, {}, tmp_path / 'out', tta=False, held_out=0)
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


def test_a_damaged_record_is_one_line(trained, tmp_path):
    teacher = str(trained / 'teacher/iter_3.pth')
    training = SelfTraining(
        teacher, str(trained / 'setting.py'), {}, tmp_path / 'out', tta=False, held_out=1
    )
    training.draw(1)
    masks = training.folder(1) / 'masks'
    (masks / 'masks.json').write_text('{}')
    with pytest.raises(UserError, match=r'masks\.json: damaged, .*: remove it, and they are drawn'):
        training.prepare(1)
    (masks / 'masks.json').unlink()
    (masks / 'held_out.json').write_bytes(b'')  # counted anew
    assert training.draw(1).skipped and training.prepare(1)


def test_a_mask_that_is_corrected_is_counted_anew(trained, tmp_path):
    config = Config.fromfile(trained / 'setting.py')
    image = str(next((trained / 'val_images').iterdir()))
    unlabeled = Unlabeled(str(trained), dict(image=image), world.CLASSES)
    mask = tmp_path / 'mask.png'

    def draw(truth):
        Image.fromarray(truth).save(mask)
        held_out = [dict(img_path=image, seg_map_path=str(mask), reduce_zero_label=False)]
        teacher, out = str(trained / 'teacher/iter_6.pth'), str(tmp_path / 'out')
        draw_masks(config, teacher, unlabeled, out, held_out=held_out, tta=False)
        pixels, right = np.array(json.loads((tmp_path / 'out/held_out.json').read_text())['counts'])
        return pixels.sum(), right.sum()

    size = Image.open(image).size[::-1]
    pixels, right = draw(np.full(size, 255, np.uint8))
    assert (pixels, right) == (0, 0)
    pixels, right = draw(np.array(Image.open(tmp_path / 'out/predictions/image.png')))
    assert pixels == right == size[0] * size[1]


def test_the_surest_half_is_that_of_the_chosen_images(trained, tmp_path):
    config = Config.fromfile(trained / 'setting.py')
    config.train_dataloader.dataset.unlabeled.indices = [0, 2, 4]
    config.dump(tmp_path / 'part.py')
    out = tmp_path / 'out'
    teacher = str(trained / 'teacher')
    training = SelfTraining(teacher, str(tmp_path / 'part.py'), {}, out, rounds=2)
    record = MasksRecord('x', 0.2, ['a'], [0], [[1]], dict(a=0.1, b=0.9, c=0.8))
    write_record(out / 'round1/masks/masks.json', record)
    dataset = Config.fromfile(training.prepare(1).config).train_dataloader.dataset
    assert dataset.unlabeled.indices == [2, 4]


@pytest.mark.parametrize('share', [0.5, 1])
def test_images_are_chosen_from_one_set_only(trained, tmp_path, share):
    config = Config.fromfile(trained / 'setting.py')
    dataset = config.train_dataloader.dataset
    dataset.unlabeled = dict(type='ConcatDataset', datasets=[dataset.unlabeled] * 2)
    config.dump(tmp_path / 'two.py')
    training = SelfTraining(
        str(trained / 'teacher'), str(tmp_path / 'two.py'), {}, tmp_path / 'out',
        rounds=2, first_share=share,
    )  # fmt: skip
    if share == 1:
        training.record()
        return
    with pytest.raises(UserError, match=r'unlabeled wraps other sets.*--first-share 1'):
        training.record()
    assert not (tmp_path / 'out').exists()


def test_images_are_read_as_the_teacher_reads_them(trained, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / 'deep.png'
    cv2.imwrite(str(path), rng.integers(0, 4096, (24, 32, 3), np.uint16))
    config = Config.fromfile(trained / 'setting.py')
    unlabeled = Unlabeled(str(tmp_path), dict(deep=str(path)), world.CLASSES)
    drawn = str(trained / 'teacher/iter_6.pth')

    def draw():
        return draw_masks(config, drawn, unlabeled, str(tmp_path / 'out'), tta=False)

    assert 'deep.png' in draw().failed[0]  # 16 bits
    pipeline = config.test_dataloader.dataset.pipeline
    pipeline[0] = dict(type='LoadChannels', value_range=(0, 4095))
    shutil.rmtree(tmp_path / 'out')
    assert (draw().failed, draw().skipped) == ([], 1)
    assert (tmp_path / 'out/pictures.png').is_file()


def test_a_teacher_of_other_classes_is_refused(trained, tmp_path, capsys):
    config = Config.fromfile(trained / 'setting.py')
    for part in config.train_dataloader.dataset.values():
        if isinstance(part, dict):
            part['classes'] = ('ground', 'thing')
    config.model.decode_head.num_classes = config.model.auxiliary_head.num_classes = 2
    config.dump(tmp_path / 'other.py')
    arguments = ('--student', tmp_path / 'other.py', '--out', tmp_path / 'out', '--held-out', '0')
    with pytest.raises(SystemExit):
        world.run_tool('self_train', trained / 'teacher', *arguments)
    assert 'labels 3 classes (ground, thing, other, ...); expected' in capsys.readouterr().err


def test_masks_come_right_after_the_image():
    pipeline = [world.LOAD_IMAGE, dict(type='MarkValidPixels'), *world.AUGMENT]
    steps = with_masks(pipeline, 'images', 'masks')
    kinds = [step['type'] for step in steps]
    assert kinds[:3] == ['LoadImageFromFile', 'LoadPseudoLabels', 'RandomResize']
    assert kinds[-1] == 'PackPseudoLabels' and 'MarkValidPixels' not in kinds
    with pytest.raises(UserError, match='expected to begin with the loading of the image'):
        with_masks(world.AUGMENT, 'images', 'masks')


def test_a_round_is_drawn_by_the_last_checkpoint_and_its_settings(trained, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(
        'mmseg_cct.studies.self_training.draw_masks',
        lambda config, checkpoint, *_, **options: given.update(options, file=checkpoint),
    )
    SelfTraining(
        str(trained / 'teacher'), str(trained / 'setting.py'), {}, tmp_path / 'out',
        0.4, tta=False, held_out=2,
    ).draw(1)  # fmt: skip
    assert os.path.basename(given['file']) == 'iter_6.pth'
    assert (given['dropped'], given['tta']) == (0.4, False)
    # two of three, evenly spaced
    assert [os.path.basename(info['img_path']) for info in given['held_out']] == [
        'v0.png',
        'v2.png',
    ]


def test_masks_of_a_replaced_image_or_another_teacher_are_never_kept(trained, tmp_path):
    config, image = Config.fromfile(trained / 'setting.py'), tmp_path / 'images/a.png'
    image.parent.mkdir()
    shutil.copy(next((trained / 'val_images').iterdir()), image)
    unlabeled = Unlabeled(str(image.parent), dict(a=str(image)), world.CLASSES)

    def draw(name):
        file = str(trained / 'teacher' / name)
        return draw_masks(config, file, unlabeled, str(tmp_path / 'out'), tta=False)

    assert [draw('iter_6.pth').written for _ in range(2)] == [1, 0]
    os.utime(image, ns=(1, 2))
    assert draw('iter_6.pth').written == 1
    with pytest.raises(UserError, match='was made with checkpoint='):
        draw('iter_3.pth')
