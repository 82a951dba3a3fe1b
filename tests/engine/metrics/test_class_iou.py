import pytest
import torch
from mmseg.evaluation import IoUMetric

from mmseg_cct.engine.metrics import ClassIoUMetric

# intersection, union, prediction and truth of two images, by class; 'c' occurs in neither
AREAS = [
    tuple(torch.tensor([[2.0, 1, 0], [4, 2, 0], [3, 1, 0], [3, 2, 0]])),
    tuple(torch.tensor([[1.0, 0, 0], [2, 2, 0], [1, 1, 0], [2, 1, 0]])),
]


def metrics_of(kind=ClassIoUMetric, areas=AREAS, classes=('a', 'b', 'c'), **kwargs):
    metric = kind(**kwargs)
    metric.dataset_meta = dict(classes=classes)
    return metric.compute_metrics(areas)


def test_the_iou_of_each_class_stands_beside_mmsegs_metrics():
    expected, metrics = metrics_of(IoUMetric), metrics_of()
    assert {name: metrics[name] for name in expected} == expected
    by_class = {name: value for name, value in metrics.items() if name not in expected}
    assert by_class == {'IoU.a': 50.0, 'IoU.b': 25.0}
    assert metrics['mIoU'] == pytest.approx((50 + 25) / 2)


def test_nothing_is_computed_where_predictions_are_only_written(tmp_path):
    assert metrics_of(format_only=True, output_dir=str(tmp_path)) == {}


@pytest.mark.parametrize(
    ('classes', 'name', 'scores'),
    [
        # summed over both images: of 'b' 1 pixel found, 2 predicted, 3 there
        (('a', 'b'), 'b', (25.0, 40.0, 50.0, 33.33)),
        (('a', 'background'), 'a', (50.0, 66.67, 75.0, 60.0)),
    ],
)
def test_of_two_classes_the_one_to_find_comes_first(classes, name, scores):
    areas = [tuple(area[:2] for area in image) for image in AREAS]
    metrics, plain = (metrics_of(kind, areas, classes) for kind in (ClassIoUMetric, IoUMetric))
    expected = [f'{key}.{name}' for key in ('IoU', 'F1', 'precision', 'recall')]
    assert list(metrics.items())[:4] == list(zip(expected, scores))
    assert metrics.items() >= plain.items()


def test_what_is_never_predicted_counts_as_nothing_found():
    # 'b' is 10 of 100 pixels, and all are predicted as 'a'
    areas = [tuple(torch.tensor([[90.0, 0], [100, 10], [100, 0], [90, 10]]))]
    metrics = metrics_of(areas=areas, classes=('a', 'b'), iou_metrics=['mDice', 'mFscore'])
    assert metrics['mFscore'] == pytest.approx(metrics['mDice'], abs=0.01)
    assert (metrics['mPrecision'], metrics['mRecall'], metrics['F1.b']) == (45, 50, 0)
