import pytest
import torch
from mmseg.evaluation import IoUMetric

from mmseg_cct.evaluation import ClassIoUMetric

# areas of intersection, union, prediction and truth of two images; 'c' occurs in neither
AREAS = [
    tuple(torch.tensor(area) for area in image)
    for image in (
        ([2.0, 1.0, 0.0], [4.0, 2.0, 0.0], [3.0, 1.0, 0.0], [3.0, 2.0, 0.0]),
        ([1.0, 0.0, 0.0], [2.0, 2.0, 0.0], [1.0, 1.0, 0.0], [2.0, 1.0, 0.0]),
    )
]


def metrics_of(kind, **kwargs):
    metric = kind(**kwargs)
    metric.dataset_meta = dict(classes=('a', 'b', 'c'))
    return metric.compute_metrics(AREAS)


def test_the_iou_of_each_class_stands_beside_mmsegs_metrics():
    expected = metrics_of(IoUMetric)
    metrics = metrics_of(ClassIoUMetric)
    assert {name: metrics[name] for name in expected} == expected
    by_class = {name: value for name, value in metrics.items() if name not in expected}
    assert by_class == {'IoU.a': 50.0, 'IoU.b': 25.0}
    assert metrics['mIoU'] == pytest.approx((50 + 25) / 2)


def test_nothing_is_computed_where_predictions_are_only_written(tmp_path):
    assert metrics_of(ClassIoUMetric, format_only=True, output_dir=str(tmp_path)) == {}
