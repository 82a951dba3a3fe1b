import tiny
import torch

N, SIZE = 2, (32, 32)


def test_the_teacher_is_no_part_of_the_model():
    model, teacher = tiny.taught()
    alone = tiny.mean_teacher()
    assert list(model.state_dict()) == list(alone.state_dict())
    assert len(list(model.parameters())) == len(list(alone.parameters()))
    model.train()
    assert model.backbone.training
    assert not teacher.training


def batch_norms(model):
    return [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]


def test_the_teachers_batch_norm_takes_the_statistics_of_the_batch():
    (model, teacher), images = tiny.taught(), torch.randn(N, 3, *SIZE)
    _, probabilities = model.predict_pair(images)
    with torch.no_grad():
        expected = tiny.mean_teacher(seed=9).train()(images).softmax(1)
        running = tiny.mean_teacher(seed=9).eval()(images).softmax(1)
    torch.testing.assert_close(probabilities, expected)
    assert not torch.allclose(probabilities, running, atol=1e-3)
    assert batch_norms(teacher) and not teacher.training


def test_or_its_running_statistics():
    (model, teacher), images = tiny.taught(batch_statistics=False), torch.randn(N, 3, *SIZE)
    _, probabilities = model.predict_pair(images)
    with torch.no_grad():
        expected = tiny.mean_teacher(seed=9).eval()(images).softmax(1)
    torch.testing.assert_close(probabilities, expected)
    assert not any(module.training for module in teacher.modules())
