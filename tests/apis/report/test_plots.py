import numpy as np
from mmengine.config import Config

from mmseg_cct.apis.report.plots import plot_class_iou, plot_curves
from mmseg_cct.apis.report.scores import Score
from mmseg_cct.apis.run import Run


def run_of(name, scalars):
    run = Run(Config(), '', name)
    run.scalars = scalars
    return run


def test_curves_show_each_value_in_its_panel():
    logs = [{'step': step, 'decode.loss_ce': 2 - step, 'decode.loss_dice': 1} for step in (1, 2)]
    runs = [run_of('sup', [dict(step=1, mIoU=4.0)]), run_of('cct', logs)]
    panels = {axes.get_title(): axes for axes in plot_curves(runs).axes}
    (line,) = panels['supervised loss Lₛ'].lines
    assert line.get_xydata().tolist() == [[1, 2], [2, 1]]
    assert line.get_color() == 'C1'
    assert [line.get_label() for line in panels['mIoU on val, %'].lines] == ['sup']
    assert not panels['consistency loss Lᵤ'].lines
    found = run_of('a', [{'step': 1, 'mIoU': 50.0, 'IoU.crack': 9.0}])
    axes = plot_curves([found], measure='IoU.crack').axes[2]
    assert axes.get_title() == 'IoU.crack on val, %'
    assert [line.get_ydata().tolist() for line in axes.lines] == [[9]]


def test_a_dot_for_each_run_and_the_difference_beside_it():
    scores = [Score('rises', [60.0, 70.0], 10.0), Score('same', [5.0, 5.0], 0.0)]
    scores += [Score('falls', [50.0, 25.0], -25.0), Score('zero', [0.0, 0.0], 0.0)]
    (axes,) = plot_class_iou(scores, Score('mean', [40.0, 31.7], -8.3), ['a', 'b']).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ['mean', 'rises', 'same', 'falls']
    assert [text.get_text() for text in axes.texts] == ['−8.3', '+10.0', '+0.0', '−25.0']
    assert [text.get_color() for text in axes.texts] == ['C0', 'C1', '0.3', 'C0']
    for dots, expected in zip(axes.collections, ([40, 60, 5, 50], [31.7, 70, 5, 25])):
        np.testing.assert_allclose(dots.get_offsets().filled(np.nan)[:, 0], expected)
