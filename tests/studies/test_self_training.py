"""A whole self-training on tiny images, and its parts that need no training."""

import json
import os

import numpy as np
import pytest
import world
from mmengine.config import Config
from PIL import Image

from mmseg_cct.errors import UserError
from mmseg_cct.studies.self_training import SelfTraining, with_masks

pytestmark = pytest.mark.slow


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


def test_two_rounds_of_masks_and_students(teacher, executed, capsys, refused):
    out = teacher / 'out'
    command = 'self_train', teacher / 'teacher', '--student', teacher / 'setting.py', '--out', out
    command = *command, '--rounds', '2', '--drop'
    assert world.run_tool(*command, '0.4') == 0
    said = capsys.readouterr().out
    assert '| predicted class | pixels | kept | lowest confidence | right |' in said
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

    first, second = (Config.fromfile(out / f'round{number}/config.py') for number in (1, 2))
    assert first.model.type == second.model.type == 'SelfTrainingSegmentor'

    # a second call finds all done; other settings are refused
    assert executed == ['student 1 of 2', 'student 2 of 2']
    assert world.run_tool(*command, '0.4') == 0 and len(executed) == 2
    assert 'out was made with dropped=0.4' in refused(*command, '0.3')
    os.utime(teacher / 'teacher/iter_6.pth', (1, 1))  # another teacher
    assert 'made with checkpoint=' in refused(*command, '0.4')


def test_masks_come_right_after_the_image():
    pipeline = [world.LOAD_IMAGE, dict(type='MarkValidPixels'), *world.AUGMENT]
    steps = with_masks(pipeline, 'images', 'masks')
    kinds = [step['type'] for step in steps]
    assert kinds[:3] == ['LoadImageFromFile', 'LoadPseudoLabels', 'RandomResize']
    assert kinds[-1] == 'PackPseudoLabels' and 'MarkValidPixels' not in kinds
    with pytest.raises(UserError, match='expected to begin with the loading of the image'):
        with_masks(world.AUGMENT, 'images', 'masks')


def test_a_round_is_drawn_by_the_last_checkpoint_and_its_settings(teacher, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(
        'mmseg_cct.studies.self_training.draw_masks',
        lambda config, checkpoint, *_, **options: given.update(options, file=checkpoint),
    )
    SelfTraining(
        str(teacher / 'teacher'), str(teacher / 'setting.py'), {}, tmp_path / 'out',
        0.4, tta=False, held_out=2,
    ).draw(1)  # fmt: skip
    assert os.path.basename(given['file']) == 'iter_6.pth'
    assert (given['dropped'], given['tta']) == (0.4, False)
    # two of three, evenly spaced
    assert [os.path.basename(info['img_path']) for info in given['held_out']] == [
        'v0.png',
        'v2.png',
    ]
