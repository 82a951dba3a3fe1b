"""What a training says of its data before it starts."""

from types import SimpleNamespace

import pytest

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.engine.hooks.preflight_hook import describe_training


class Set(list):
    def __init__(self, length, classes=None):
        super().__init__(range(length))
        self.metainfo = dict(classes=classes)


def pairs(labeled, unlabeled, classes=('road', 'car')):
    dataset = SemiSegDataset.__new__(SemiSegDataset)
    dataset.labeled = Set(labeled, classes)
    dataset.unlabeled = None if unlabeled is None else Set(unlabeled)
    return dataset


def describe(dataset, validated=None):
    runner = SimpleNamespace(
        train_dataloader=SimpleNamespace(dataset=dataset, batch_size=8),
        train_loop=None,
        val_loop=validated and SimpleNamespace(dataloader=SimpleNamespace(dataset=Set(validated))),
        max_iters=60,
    )
    return describe_training(runner)


@pytest.mark.parametrize(
    ('dataset', 'expected'),
    [
        (pairs(20, 80), '20 labelled and 80 unlabelled images, 2 classes (road, car)'),
        (pairs(20, None), '20 labelled images, 2 classes (road, car)'),
        (Set(5, ('a',)), '5 images, 1 classes (a)'),
        (
            SimpleNamespace(domains=dict(x=pairs(1, 2), y=pairs(3, 4, ('sky',)))),
            'x: 1 labelled and 2 unlabelled images, 2 classes (road, car); '
            'y: 3 labelled and 4 unlabelled images, 1 classes (sky)',
        ),
    ],
)
def test_the_line_counts_images_and_names_classes(dataset, expected):
    assert describe(dataset) == f'Training on {expected}; 60 iterations, batch size 8'


def test_the_line_counts_what_is_validated_on():
    assert describe(pairs(2, 3), 51).endswith('batch size 8; validating on 51 images')
