"""The teacher of targets in whole runs on drawn scenes."""

import pytest
import tiny
import torch
from mmengine.hooks import Hook
from mmseg.registry import MODELS
from teacher_training import train

HOOK = dict(type='TeacherHook', decay=0.9)


class StartOfTheTeacher(Hook):
    """Keeps student and teacher as they are before the first iteration."""

    priority = 'LOWEST'

    def before_train(self, runner):
        (teacher,) = runner.model._teacher
        self.student, self.teacher = (
            {name: value.clone() for name, value in model.state_dict().items()}
            for model in (runner.model, teacher)
        )


def load(path):
    return torch.load(path, map_location='cpu', weights_only=False)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('whole')
    return work_dir, *train(work_dir, HOOK)


def test_the_checkpoint_is_the_student(whole):
    work_dir, _, runner = whole
    checkpoint = load(work_dir / 'iter_4.pth')
    assert checkpoint['meta']['network'] == 'student'
    assert 'ema_state_dict' not in checkpoint
    (teacher,) = runner.model._teacher
    for name, value in runner.model.state_dict().items():
        assert torch.equal(checkpoint['state_dict'][name], value), name
    for name, value in teacher.state_dict().items():
        assert torch.equal(checkpoint['teacher_state_dict'][f'module.{name}'], value), name
    name = 'decode_head.conv_seg.weight'
    assert not torch.equal(teacher.state_dict()[name], runner.model.state_dict()[name])


def test_what_is_validated_is_the_student(whole):
    _, _, runner = whole
    config = tiny.model_config(type='EncoderDecoder', auxiliary_head=None)
    config['decode_head']['num_classes'] = 7
    plain = MODELS.build(config).eval()
    plain.load_state_dict(
        {k: v for k, v in runner.model.state_dict().items() if not k.startswith('auxiliary_head')}
    )
    seen = []
    handle = runner.model.decode_head.upsample.register_forward_hook(
        lambda *call: seen.append(call[-1])
    )
    runner.val_loop.run()
    handle.remove()
    data = next(iter(runner.val_dataloader))
    with torch.no_grad():
        expected = plain(plain.data_preprocessor(data)['inputs'])
    torch.testing.assert_close(seen[0], expected)


def test_validation_changes_the_mode_of_neither(whole):
    _, recorder, _ = whole
    assert recorder.training == [(True, False)] * 4


def test_a_resumed_training_is_the_one_that_was_never_killed(whole, tmp_path):
    work_dir, recorder, _ = whole
    train(tmp_path / 'cut', HOOK, kill_after=3)
    resumed, _ = train(tmp_path / 'cut', HOOK, resume=True)
    for expected, actual in zip(recorder.outputs[2:], resumed.outputs, strict=True):
        assert actual == pytest.approx(expected, rel=1e-5)
    expected, actual = load(work_dir / 'iter_4.pth'), load(tmp_path / 'cut/iter_4.pth')
    for key in ('state_dict', 'teacher_state_dict'):
        for name, value in expected[key].items():
            torch.testing.assert_close(actual[key][name], value, msg=name)


def test_without_a_teacher_in_the_checkpoint_it_starts_as_the_student(whole, tmp_path):
    work_dir, _, _ = whole
    checkpoint = load(work_dir / 'iter_2.pth')
    del checkpoint['teacher_state_dict']
    torch.save(checkpoint, tmp_path / 'iter_2.pth')
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_2.pth'))
    start = StartOfTheTeacher()
    recorder, _ = train(tmp_path, HOOK, resume=True, hooks=[start])
    assert len(recorder.outputs) == 2
    for name, value in checkpoint['state_dict'].items():
        assert torch.equal(start.student[name], value), name
        assert torch.equal(start.teacher[name], value), name
