import numpy as np
import pytest
import torch
from mmengine.structures import PixelData
from mmseg.registry import VISUALIZERS
from mmseg.structures import SegDataSample
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mmseg_cct.engine.visualization import (
    GroupedTensorboardVisBackend,
    MultiDomainVisualizer,
    blend,
)

RED, GREEN, BLUE = [255, 0, 0], [0, 255, 0], [0, 0, 255]
A = dict(classes=('x', 'y'), palette=[RED, GREEN])
B = dict(classes=('u', 'v', 'w'), palette=[RED, GREEN, BLUE])
META = dict(domains=dict(a=A, b=B))
COLOURS = [(200, 0, 0), (0, 200, 0), (0, 0, 200)]


@pytest.mark.parametrize('name', ['background', 'unlabelled'])
def test_the_background_keeps_the_photos_pixels(name):
    image, labels = np.full((1, 2, 3), 100, np.uint8), np.uint8([[0, 1]])
    assert blend(image, labels, [name, 'car'], COLOURS, 0.5).tolist() == [
        [[100] * 3, [50, 150, 50]]
    ]
    assert blend(image, labels, ['sky', 'car'], COLOURS, 1).tolist() == [[[200, 0, 0], [0, 200, 0]]]


def test_a_sample_is_painted_with_the_colours_of_its_domain(tmp_path):
    settings = dict(type='MultiDomainVisualizer', name='of domains', save_dir=str(tmp_path))
    settings |= dict(alpha=1.0, vis_backends=[dict(type='LocalVisBackend')])
    visualizer = VISUALIZERS.build(settings)
    assert MultiDomainVisualizer.get_instance('of domains') is visualizer
    visualizer.dataset_meta = META
    image = np.zeros((40, 40, 3), np.uint8)
    for domain, label in (('a', 1), ('b', 2)):
        sample = SegDataSample(metainfo=dict(domain=domain))
        sample.pred_sem_seg = PixelData(data=torch.full((1, 40, 40), label))
        visualizer.add_datasample(domain, image, sample, draw_gt=False, with_labels=False)
        colour = META['domains'][domain]['palette'][label]
        assert (visualizer.get_image() == colour).all()
        assert visualizer.dataset_meta is META
    assert len(list(tmp_path.rglob('*.png'))) == 2


def test_the_part_of_the_model_is_the_group(tmp_path):
    backend = GroupedTensorboardVisBackend(save_dir=str(tmp_path))
    backend.add_scalars({'aux.consistency': 0.5, 'lr': 0.5, 'a.b.c': 0.5}, step=3)
    backend.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    for tag in ('aux/consistency', 'lr', 'a/b.c'):
        assert [(event.step, event.value) for event in events.Scalars(tag)] == [(3, 0.5)]
