from types import SimpleNamespace

from mmseg_cct.apis.report.plots import plot_curves


def test_a_panel_has_the_curve_of_each_run_that_logged_it():
    steps = [{'step': i, 'decode.loss_ce': 2.0, 'decode.loss_dice': 1.0} for i in (5, 10)]
    first = SimpleNamespace(name='a', scalars=[*steps, {'step': 10, 'mIoU': 40.0}])
    second = SimpleNamespace(name='b', scalars=[{'step': 5, 'aux.consistency': 0.1, 'loss': 9.0}])
    drawn = [
        [(line.get_color(), *map(list, line.get_data())) for line in axes.lines]
        for axes in plot_curves([first, second]).axes
    ]
    assert drawn == [[('C0', [5, 10], [3, 3])], [('C1', [5], [0.1])], [('C0', [10], [40])]]
