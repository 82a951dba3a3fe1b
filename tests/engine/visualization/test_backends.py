import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mmseg_cct.engine.visualization import GroupedTensorboardVisBackend


@pytest.mark.parametrize(
    'name, tag',
    [('aux.consistency', 'aux/consistency'), ('lr', 'lr'), ('a.b.c', 'a/b.c')],
)
def test_the_part_of_the_model_is_the_group(tmp_path, name, tag):
    backend = GroupedTensorboardVisBackend(save_dir=str(tmp_path))
    backend.add_scalars({name: 0.5}, step=3)
    backend.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(event.step, event.value) for event in events.Scalars(tag)] == [(3, 0.5)]
