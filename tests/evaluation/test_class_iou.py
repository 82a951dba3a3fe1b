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
    metric, plain = ClassIoUMetric(), IoUMetric()
    metric.dataset_meta = plain.dataset_meta = dict(classes=classes)
    metrics = metric.compute_metrics(areas)
    expected = [f'{key}.{name}' for key in ('IoU', 'F1', 'precision', 'recall')]
    assert list(metrics.items())[:4] == list(zip(expected, scores))
    assert metrics.items() >= plain.compute_metrics(areas).items()


def test_a_foreground_that_neither_occurs_nor_is_predicted_has_no_scores():
    areas = [tuple(torch.tensor([4.0, 0.0]) for _ in range(4))]
    metric = ClassIoUMetric()
    metric.dataset_meta = dict(classes=('background', 'crack'))
    assert not [key for key in metric.compute_metrics(areas) if key.endswith('crack')]


def test_classes_that_no_mask_shows_are_in_no_metric():
    # two images of 100 pixels, half 'a' and half 'b'; in the second, 10 of 'a' are taken for 'c'
    areas = [
        tuple(map(torch.tensor, image))
        for image in (
            ([50.0, 50.0, 0.0], [50.0, 50.0, 0.0], [50.0, 50.0, 0.0], [50.0, 50.0, 0.0]),
            ([40.0, 50.0, 0.0], [50.0, 50.0, 10.0], [40.0, 50.0, 10.0], [50.0, 50.0, 0.0]),
        )
    ]
    metric = ClassIoUMetric()
    metric.dataset_meta = dict(classes=('a', 'b', 'c'))
    for results, miou in ((areas[:1], 100), (areas, 95)):  # the names stay
        metrics = metric.compute_metrics(results)
        assert list(metrics) == ['aAcc', 'mIoU', 'mAcc', *metric.names_for(['a', 'b'])]
        assert metrics['mIoU'] == miou
    assert metrics['aAcc'] == 95 and metrics['IoU.a'] == 90


def test_the_names_are_known_before_the_first_validation():
    metric = ClassIoUMetric()
    metric.dataset_meta = dict(classes=('background', 'crack'))
    areas = [tuple(torch.tensor([4.0, n]) for n in (0.0, 1.0, 0.0, 1.0))]  # nothing predicted
    metrics = metric.compute_metrics(areas)
    assert metrics.keys() > set(metric.names_for(['background', 'crack']))
    assert metrics['F1.crack'] == metrics['IoU.crack'] == 0
    assert metric.names_for(['background']) == ['IoU.background']
