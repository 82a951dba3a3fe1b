import json

import pytest

from mmseg_cct.studies.ablation import write_ablation
from mmseg_cct.studies.study import Result
from mmseg_cct.studies.validation_curves import plot_validations, read_validations

RUNS = [
    Result('cct', '20', 0, 31.0),
    Result('cct', '20', 1, 33.0),
    Result('supervised', '5', 0, 9.0),
]


@pytest.fixture(params=['mIoU', 'mIoU_avg'])  # the second of several domains
def out(request, tmp_path):
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


def test_validations_are_read_by_method_and_labels(out):
    curves = read_validations(out, RUNS)
    assert curves['cct', '20'] == [[(10, 10.0), (20, 20.0), (30, 30.0)], [(10, 14.0), (20, 22.0)]]
    assert curves['supervised', '5'] == [[(10, 5.0), (20, 6.0)]]
    assert read_validations(out, [Result('cct', '5', 7, 1.0)]) == {}  # without a validation
    assert '![curves](curves.png)' in write_ablation(out).read_text()
    assert (out / 'curves.png').stat().st_size > 0


def test_the_mean_is_over_what_all_seeds_have(out):
    few, many = plot_validations(read_validations(out, RUNS), dict(supervised='b', cct='c')).axes
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
