"""The learning curve's arithmetic by hand, and the subsets it trains on."""

import math

import pytest
from mmengine.config import Config
from mmseg.registry import DATASETS

from mmseg_cct.errors import UserError
from mmseg_cct.studies.learning_curve import (
    answer,
    barely_trained,
    equivalent_labels,
    nested_subsets,
    plot_learning_curve,
    write_learning_curve,
)
from mmseg_cct.studies.results import Result

NUMBERS, MIOU = [10, 20, 80], [30.0, 40.0, 50.0]


@pytest.mark.parametrize(
    ('target', 'expected'),
    [
        (40.0, 20.0),
        (35.0, 10 * 2**0.5),  # half way between 10 and 20 in log n
        (45.0, 40.0),  # half way between 20 and 80
        (50.0, 80.0),
        (50.1, math.inf),
        (30.0, 10.0),
        (5.0, 10.0),
    ],
)
def test_equivalent_labels(target, expected):
    assert equivalent_labels(NUMBERS, MIOU, target) == pytest.approx(expected)
    if target == 40.0:  # a curve that dips counts from where it first gets there
        dips = equivalent_labels([10, 20, 40, 80], [30.0, 40.0, 36.0, 44.0], 38.0)
        assert dips == pytest.approx(10 * 2**0.8)


def results_of(curves, seeds=(0, 1, 2)):
    """`curves`: method → number → mIoU of each seed."""
    return [
        Result(method, str(n), seed, miou)
        for method, curve in curves.items()
        for n, values in curve.items()
        for seed, miou in zip(seeds, values)
    ]


def test_the_answer_in_words():
    results = results_of(
        dict(
            supervised={10: (29, 31, 30), 20: (40, 40, 40), 80: (50, 50, 50), 160: (52, 52, 52)},
            cct={10: (34, 36, 35), 20: (48, 41, 43), 80: (49, 48, 48.5), 160: (55, 56, 55.5)},
        )
    )
    assert answer(results, rising={10}).pays == '160 labels'
    said = answer(results)
    assert (said.title, said.pays, said.costs) == ('cct', '10 and 160 labels', '80 labels')
    assert said.untold == {'the 95 % interval of the gain holds 0': '20 labels'}
    assert said.lines == [
        '10 labels: cct 35.0, supervised 30.0 mIoU; +5.0 ±0.0, ahead with 3 of 3 seeds. '
        'Supervised training needs about 14 labels for that, 4 labels more.',
        '20 labels: cct 44.0, supervised 40.0 mIoU; +4.0 ±9.0, ahead with 3 of 3 seeds. '
        'Supervised training needs about 35 labels for that, 15 labels more.',
        '80 labels: cct 48.5, supervised 50.0 mIoU; −1.5 ±1.2, ahead with 0 of 3 seeds. '
        'Supervised training needs about 65 labels for that, 15 labels fewer.',
        '160 labels: cct 55.5, supervised 52.0 mIoU; +3.5 ±1.2, ahead with 3 of 3 seeds. '
        'Supervised training does not reach that with any number up to 160.',
    ]


CHANCE = 'fewer than 3 seeds can agree by chance; run more'
RISING = 'the networks are barely trained (mIoU still rose at the end); train longer'
ZERO = 'the 95 % interval of the gain holds 0'


@pytest.mark.parametrize(
    ('supervised', 'cct', 'rising', 'reason'),
    [
        ([30], [20], (), CHANCE),
        ([30] * 2, [20] * 2, (), CHANCE),
        ([9] * 3, [12] * 3, {1}, RISING),
        ([30] * 3, [30] * 3, (), ZERO),
    ],
)
def test_what_does_not_decide(supervised, cct, rising, reason):
    said = answer(results_of(dict(supervised={1: supervised}, cct={1: cct})), rising=rising)
    assert (said.pays, said.costs, said.untold) == (None, None, {reason: '1 label'})
    if reason == CHANCE:
        assert said.lines[0].startswith('1 label: cct 20.0, supervised 30.0 mIoU; −10.0')
        assert said.lines[0].endswith('Supervised training is as good with 1 label or fewer.')


def test_a_network_is_barely_trained_while_its_validations_rise():
    curves = {
        ('cct', '10'): [[(25, 10.0), (75, 20.0), (100, 21.9)]],
        ('cct', '20'): [[(75, 20.0), (100, 21.0)], [(75, 20.0), (100, 22.3)]],
        ('supervised', '40'): [[(100, 20.0)]],  # validated once
        ('supervised', '80'): [[(50, 5.0), (76, 30.0), (100, 31.0)]],
        ('supervised', '160'): [[(50, 16.5), (100, 20.0)]],  # 1.75 in a quarter
        ('supervised', '320'): [[(50, 15.0), (100, 20.0)]],
        ('supervised', '640'): [[(90, 18.0), (100, 19.5)]],  # not 3.75
    }
    assert barely_trained(curves) == {20, 320}


UNEVEN = dict(supervised={10: (30,), 20: (40, 10), 80: (10,)}, cct={10: (35,), 20: (9, 15)})


def test_labels_are_worth_what_the_same_seeds_are():
    """Seed 1 has 20 labels alone, where it is 30 points below seed 0."""
    assert answer(results_of(UNEVEN)).lines == [
        '10 labels: cct 35.0, supervised 30.0 mIoU; +5.0, one seed. '
        'Supervised training needs about 14 labels for that, 4 labels more.',
        '20 labels: cct 12.0, supervised 25.0 mIoU; −13.0 ±228.7, ahead with 1 of 2 seeds. '
        'Supervised training is as good with 20 labels or fewer. Left out: 10 and 80 labels, '
        'without a supervised run of each seed.',
    ]


def test_the_figure_is_of_the_same_seeds():
    curves = {**UNEVEN, 'cct': {**UNEVEN['cct'], 10: (35, 99)}}
    (axes,) = plot_learning_curve(results_of(curves)).axes
    assert [arrow.xyann for arrow in axes.texts] == [(10, 35)]
    assert axes.texts[0].xy == (pytest.approx(10 * 2**0.5), 35)
    assert [list(line.get_ydata()) for line in axes.lines] == [[30, 25, 10], [35, 12]]
    seeds = [dots.get_offsets()[:, 1].tolist() for dots in axes.collections]
    assert seeds == [[30], [40, 10], [10], [35], [9, 15]]


def test_a_gain_beside_a_curve_that_dips_is_worth_no_fewer_labels():
    curves = dict(supervised={1: [40], 24: [38], 48: [39.5]}, cct={24: [39], 48: [39]})
    gain, loss = answer(results_of(curves)).lines
    assert gain.endswith(
        '+1.0, one seed. What that is worth in labels cannot be told: supervised training is '
        'better with 1 label (40.0) than with 24.'
    )
    assert loss.endswith('−0.5, one seed. Supervised training is as good with 1 label or fewer.')


def test_a_study_without_pairs_says_so(tmp_path, put_result):
    assert answer([]).lines == answer([Result('cct', '10', 0, 30.0)]).lines == []
    put_result(tmp_path, 'cct', 10, 0, 30.0)
    text = write_learning_curve(tmp_path).read_text()
    assert '\n\nNo number of labels has a finished run of both' in text


def test_the_page_is_about_the_method_that_ran(tmp_path, put_result):
    for seed in range(3):
        for n, miou in zip(NUMBERS, MIOU):
            put_result(tmp_path, 'supervised', n, seed, miou)
            put_result(tmp_path, 'cct-plus', n, seed, miou + 4)
    text = write_learning_curve(tmp_path).read_text()
    assert text.startswith('# Does cct-plus pay?\n\n**cct-plus pays** with 10')
    assert '\n- 10 labels: cct-plus 34.0, supervised 30.0 mIoU' in text
    assert '| cct-plus | 34.0 ± 0.0 | 44.0 ± 0.0 | 54.0 ± 0.0 |' in text
    assert (tmp_path / 'learning_curve.png').stat().st_size > 0
    put_result(tmp_path, 'kl', 10, 0, 99.0)
    with pytest.raises(UserError, match='runs of cct-plus, kl: expected one method beside the'):
        write_learning_curve(tmp_path)


@pytest.fixture
def demo(project_root):
    return str(project_root / 'configs' / 'demo' / 'cct_shapes.py')


def test_subsets_are_nested_and_the_seeds(demo):
    chosen = {}
    for number, set_labels in nested_subsets(demo, {}, [3, 6, 12]).items():
        for seed in (0, 1):
            config = Config.fromfile(demo)
            set_labels(config, seed)
            chosen[number, seed] = config.train_dataloader.dataset.labeled.indices
            dataset = DATASETS.build(config.train_dataloader.dataset.labeled)
            numbers = [info['scene'][1] for info in map(dataset.get_data_info, range(len(dataset)))]
            assert numbers == chosen[number, seed]
    assert {key: len(value) for key, value in chosen.items()} == {
        (n, seed): int(n) for n in ('3', '6', '12') for seed in (0, 1)
    }
    for seed in (0, 1):
        assert set(chosen['3', seed]) < set(chosen['6', seed]) < set(chosen['12', seed])
    assert chosen['6', 0] != chosen['6', 1]
    assert list(nested_subsets(demo, {}, [])) == ['1', '3', '6', '12']


@pytest.mark.parametrize(
    ('numbers', 'options', 'message'),
    [
        ([0, 3], {}, 'expected numbers from 1 to 12, the labelled images'),
        ([13], {}, 'expected numbers from 1 to 12, the labelled images'),
        ([3], {'train_dataloader.dataset.labeled.indices': 5}, 'takes a subset already'),
    ],
)
def test_what_cannot_be_drawn_is_an_error(demo, numbers, options, message):
    with pytest.raises(UserError, match=message):
        nested_subsets(demo, options, numbers)
