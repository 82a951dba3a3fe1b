import pytest
import torch
from ranks import on_two_ranks, without_cuda

from mmseg_cct.errors import UserError
from mmseg_cct.models.losses import AdaptiveThreshold, ClassThreshold, FixedThreshold


def predictions(seed=0):
    torch.manual_seed(seed)
    probabilities = (2 * torch.randn(2, 4, 3, 5)).softmax(1)
    probabilities[:, 3] = 0  # a class that no pixel is of
    valid = torch.rand(2, 1, 3, 5) < 0.7
    return *probabilities.max(1, keepdim=True), valid


def naive_mean_of_largest(confidence, labels, valid):
    largest = {}
    for c, label, real in zip(*(t.flatten().tolist() for t in (confidence, labels, valid))):
        if real:
            largest[label] = max(largest.get(label, 0), c)
    return sum(largest.values()) / len(largest)


def test_it_follows_the_mean_over_classes_of_the_largest_confidence():
    threshold, expected = AdaptiveThreshold(0.85, momentum=0.9), 0.85
    for seed in range(3):
        batch = predictions(seed)
        expected = 0.9 * expected + 0.1 * naive_mean_of_largest(*batch)
        assert threshold(*batch).item() == pytest.approx(expected)


def test_it_rests_outside_training_and_is_kept_in_a_checkpoint():
    threshold = AdaptiveThreshold(0.85, momentum=0.5)
    moved = threshold(*predictions()).item()
    assert moved != 0.85
    threshold.eval()
    assert threshold(*predictions(1)).item() == moved
    other = AdaptiveThreshold()
    other.load_state_dict(threshold.state_dict())
    assert other.value.item() == moved


def test_it_rests_where_all_is_padding():
    confidence, labels, valid = predictions()
    threshold = AdaptiveThreshold(0.85)
    assert threshold(confidence, labels, torch.zeros_like(valid)).item() == pytest.approx(0.85)


@without_cuda
def test_all_ranks_have_the_same_one(tmp_path):
    def moved(rank):
        return AdaptiveThreshold(0.85, momentum=0.9)(*predictions(rank)).item()

    mean = sum(naive_mean_of_largest(*predictions(rank)) for rank in range(2)) / 2
    first, second = on_two_ranks(moved, tmp_path)
    assert first == second == pytest.approx(0.9 * 0.85 + 0.1 * mean)


def test_a_fixed_one_stays():
    assert FixedThreshold(0.9)(*predictions()) == 0.9
    assert not FixedThreshold().state_dict()


@pytest.mark.parametrize('value', [-0.1, 1.1])
def test_a_value_out_of_range_is_an_error(value):
    with pytest.raises(UserError, match=rf'FixedThreshold.value={value}: expected a number in'):
        FixedThreshold(value)
    with pytest.raises(UserError, match=rf'AdaptiveThreshold.initial={value}: expected a'):
        AdaptiveThreshold(value)
    with pytest.raises(UserError, match=rf'AdaptiveThreshold.momentum={value}: expected a'):
        AdaptiveThreshold(momentum=value)


def test_each_class_has_its_own_threshold():
    confidence = torch.tensor([0.6, 0.6, 1.0, 0.2]).view(1, 1, 2, 2)
    labels = torch.tensor([0, 1, 2, 1]).view(1, 1, 2, 2)
    threshold = ClassThreshold([0.5, 0.7, None])
    counts = confidence >= threshold(confidence, labels, torch.ones_like(confidence))
    assert counts.flatten().tolist() == [True, False, False, False]
    assert not threshold.state_dict()
    with pytest.raises(UserError, match=r'2 values, and a class of id 2; expected one for each'):
        ClassThreshold([0.5, 0.7])(confidence, labels, confidence)
    with pytest.raises(UserError, match=r'ClassThreshold.values\[1\]=1.5: expected a number in'):
        ClassThreshold([0.5, 1.5])
