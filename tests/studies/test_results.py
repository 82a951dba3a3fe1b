"""Results from made-up folders: gains and verdicts by hand, and validation curves."""

import json
import math

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.studies.ablation import write_ablation
from mmseg_cct.studies.results import (
    Result,
    collect,
    gains_table,
    holm,
    p_value,
    plot_validations,
    read_validations,
    verdicts,
)

RUNS = [
    Result('cct', '20', 0, 31.0),
    Result('cct', '20', 1, 33.0),
    Result('supervised', '5', 0, 9.0),
]


def test_p_is_students():
    """By hand: of one degree of freedom 1 - 2 / π · atan(t), of two 1 - t / sqrt(t² + 2)."""
    t = 3 / (1 / 3**0.5)
    assert p_value([2, 4, 3]) == pytest.approx(1 - t / (t**2 + 2) ** 0.5)
    assert p_value([-2, -4, -3]) == p_value([2, 4, 3])
    assert (p_value([5]), p_value([0, 0])) == (1, 1)
    # equal gains vary by their rounding
    t = 2 * 2**0.5 / (0.1 / 6**0.5)
    assert p_value([2, 2]) == pytest.approx(1 - 2 / math.pi * math.atan(t))


def test_holm_steps_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1, 1]
    assert holm([]) == []


def test_a_gain_among_many_needs_more():
    clear, weak = [2.0, 2.1, 1.9], [2.0, 4.0, 3.0]  # p of 0.0008 and 0.035
    assert verdicts([weak]) == ['ahead, 3 pairs']
    noise = [1.0, -1.0, 0.5]
    assert verdicts([clear, weak, noise, [9.0, 9.0]]) == [
        'ahead, 3 pairs',
        'no difference shown, 3 pairs',
        'no difference shown, 3 pairs',
        'fewer than 3 pairs',
    ]
    assert verdicts([[-gain for gain in clear]]) == ['behind, 3 pairs']


def test_gains_are_those_of_pairs():
    """By hand: mean of 2, 4 and 3, standard deviation 1, t of two degrees of freedom 4.303."""
    results = [
        *(Result('supervised', '20', seed, miou) for seed, miou in enumerate([40.0, 30.0, 35.0])),
        *(Result('cct', '20', seed, miou) for seed, miou in enumerate([42.0, 34.0, 38.0, 99.0])),
        *(Result('kl', '20', seed, miou) for seed, miou in enumerate([38.0, 31.0, 35.0])),
        *(Result('js', '20', seed, miou) for seed, miou in enumerate([38.0, 28.5])),
        Result('cct-abce', '20', 1, 33.0),
        Result('cct-abce', '50', 1, 33.0),
    ]
    methods = ['supervised', 'cct', 'kl', 'js', 'cct-abce']
    rows = gains_table(results, methods, 'supervised').rows
    assert rows == [
        ['cct', '20', '+3.0', '±2.5', '+2.0 +4.0 +3.0', 'no difference shown, 3 pairs'],
        ['kl', '20', '−0.3', '±3.8', '−2.0 +1.0 +0.0', 'no difference shown, 3 pairs'],
        ['js', '20', '−1.8', '±3.2', '−2.0 −1.5', 'fewer than 3 pairs'],
        ['cct-abce', '20', '+3.0', '', '+3.0', 'fewer than 3 pairs'],
    ]
    alone = gains_table(results, ['cct'], 'supervised')  # the only comparison
    assert alone.rows[0][-2:] == ['+2.0 +4.0 +3.0', 'ahead, 3 pairs']
    assert not gains_table(results[:3], methods, 'supervised').rows


@pytest.mark.parametrize(
    ('metrics', 'message'),
    [
        ('{"mDice": 3}', 'its test gave .*mDice'),
        ('{"mIoU": NaN}', 'seed0: its test gave .*nan'),
    ],
)
def test_a_test_without_miou_is_an_error(tmp_path, metrics, message):
    folder = tmp_path / 'a' / '20' / 'seed0' / 'test' / '1'
    folder.mkdir(parents=True)
    (folder / '1.json').write_text(metrics)
    with pytest.raises(UserError, match=message):
        collect(tmp_path)


@pytest.fixture(params=['mIoU', 'mIoU_avg'])  # the second of several domains
def logged(request, tmp_path):
    """Logs of three runs: losses and validations at 10 and 20, one run's also at 30."""
    for run, values in zip(RUNS, [(10.0, 20.0, 30.0), (14.0, 22.0), (5.0, 6.0)]):
        folder = tmp_path / run.method / run.labels / f'seed{run.seed}'
        log = [dict(loss=1.0, step=5)]
        log += [{request.param: miou, 'step': 10 * (i + 1)} for i, miou in enumerate(values)]
        file = folder / 'train' / '1' / 'vis_data' / 'scalars.json'
        file.parent.mkdir(parents=True)
        file.write_text('\n'.join(map(json.dumps, log)))
        (folder / 'test' / '1').mkdir(parents=True)
        (folder / 'test' / '1' / '1.json').write_text(json.dumps(dict(mIoU=run.miou)))
    return tmp_path


def test_validations_are_read_by_method_and_labels(logged):
    curves = read_validations(logged, RUNS)
    assert curves['cct', '20'] == [[(10, 10.0), (20, 20.0), (30, 30.0)], [(10, 14.0), (20, 22.0)]]
    assert curves['supervised', '5'] == [[(10, 5.0), (20, 6.0)]]
    assert read_validations(logged, [Result('cct', '5', 7, 1.0)]) == {}  # without a validation
    write_ablation(logged)
    assert '![curves](curves.png)' in (logged / 'ablation.md').read_text()
    assert (logged / 'curves.png').stat().st_size > 0


def test_the_mean_is_over_what_all_seeds_have(logged):
    few, many = plot_validations(read_validations(logged, RUNS), dict(supervised='b', cct='c')).axes
    assert (few.get_title(), many.get_title()) == ('5 labelled images', '20 labelled images')
    lines = {line.get_label(): line.get_xydata().tolist() for line in few.lines}
    assert lines == {'b': [[10, 5], [20, 6]], 'c': []}
    thick = [line.get_xydata().tolist() for line in many.lines if line.get_label() == 'c']
    assert thick == [[[10, 12], [20, 21]]]
    assert len(many.lines) == 2 + 2  # two means, and each seed of the one with two
    # a validation that one seed lacks leaves the others
    curves = {('cct', '20'): [[(10, 1.0), (20, 2.0), (30, 3.0)], [(20, 4.0), (30, 6.0)]]}
    (axes,) = plot_validations(curves, dict(cct='c')).axes
    (mean,) = (line.get_xydata().tolist() for line in axes.lines if line.get_label() == 'c')
    assert mean == [[20, 3.0], [30, 4.5]]


def test_every_method_has_a_look_and_its_name_in_the_legend():
    titles = {f'm{number}': f'a method, {number}' for number in range(24)}
    figure = plot_validations({(method, '5'): [[(1, 2.0)]] for method in titles}, titles)
    (axes,) = figure.axes
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 24
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
