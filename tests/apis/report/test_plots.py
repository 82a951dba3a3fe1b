import numpy as np
from mmengine.config import Config

from mmseg_cct.apis.report.plots import plot_class_iou, plot_curves
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


LONG = ['a supervised training with twenty labels of CamVid', 'cct_mbv2_camvid_50_' * 3]


def test_long_names_do_not_collide():
    dots = plot_class_iou({name: np.array([0.9, 0.8]) for name in LONG}, ['x', 'y'])
    curves = plot_curves([run_of(name, [dict(step=1, mIoU=4.0)]) for name in LONG])
    for figure in (dots, curves):
        assert len(figure.legends[0].get_texts()) == 2
