"""Legends that a figure does not cut off."""

import pytest
from matplotlib.figure import Figure

from mmseg_cct.visualization.figures import legend_below


@pytest.mark.parametrize(
    'labels', [['a', 'b'], [f'a method of the ablation, K={k}' for k in range(9)], ['word ' * 40]]
)
@pytest.mark.parametrize('width', [4, 11])
def test_a_legend_is_within_its_figure_and_leaves_the_axes_their_size(labels, width):
    figure = Figure(figsize=(width, 3), layout='constrained')
    axes = figure.subplots()
    figure.draw_without_rendering()
    before = axes.get_window_extent().height
    for label in labels:
        axes.plot([0, 1], label=label)
    legend_below(figure, axes.get_legend_handles_labels()[0])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y1 < axes.get_window_extent().y0
    assert axes.get_window_extent().height == pytest.approx(before, rel=0.1)
    shown = [text.get_text().split() for text in legend.get_texts()]
    assert shown == [label.split() for label in labels]
