from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mmseg_cct.engine.visualization import GroupedTensorboardVisBackend


def test_the_part_of_the_model_is_the_group(tmp_path):
    backend = GroupedTensorboardVisBackend(save_dir=str(tmp_path))
    backend.add_scalars({'aux.consistency': 0.5, 'lr': 0.5, 'a.b.c': 0.5}, step=3)
    backend.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    for tag in ('aux/consistency', 'lr', 'a/b.c'):
        assert [(event.step, event.value) for event in events.Scalars(tag)] == [(3, 0.5)]
