import pytest
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


@pytest.mark.parametrize('batch_statistics', [True, False])
def test_the_teachers_batch_norm_takes_the_statistics_of_the_batch_or_its_own(batch_statistics):
    model, teacher = tiny.taught(batch_statistics=batch_statistics)
    images = torch.randn(N, 3, *SIZE)
    _, probabilities = model.predict_pair(images)
    with torch.no_grad():
        of_batch, running = (
            tiny.mean_teacher(seed=9).train(training)(images).softmax(1)
            for training in (True, False)
        )
    torch.testing.assert_close(probabilities, of_batch if batch_statistics else running)
    assert not torch.allclose(of_batch, running, atol=1e-3)
    assert any(module.training for module in teacher.modules()) == batch_statistics
    assert not teacher.training
