"""Legends that a figure does not cut off, and names that it does not parse."""

import matplotlib
import pytest
from matplotlib.figure import Figure

from mmseg_cct.engine.visualization.figures import outer_legend, png_bytes


@pytest.mark.parametrize(
    ('width', 'labels'),
    [(4, ['word ' * 40]), (11, [f'a method of the ablation, K={k}' for k in range(9)])],
)
def test_a_legend_is_within_its_figure_and_leaves_the_axes_their_size(labels, width):
    figure = Figure(figsize=(width, 3), layout='constrained')
    axes = figure.subplots()
    figure.draw_without_rendering()
    before = axes.get_window_extent().height
    for label in labels:
        axes.plot([0, 1], label=label)
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    assert box.y1 < axes.get_window_extent().y0
    assert axes.get_window_extent().height == pytest.approx(before, rel=0.1)
    shown = [text.get_text().split() for text in legend.get_texts()]
    assert shown == [label.split() for label in labels]


def test_dollars_are_characters():
    figure, name = Figure(layout='constrained'), r'a$\frac{$b'
    axes = figure.subplots()
    axes.plot([0, 1], label=name)
    axes.set_title(name)
    axes.set_xticks([0, 1], [name, 'b'])
    outer_legend(figure, axes.get_legend_handles_labels()[0])
    assert png_bytes(figure).startswith(b'\x89PNG')
    assert not any(text.get_parse_math() for text in (axes.title, *axes.get_xticklabels()))
    assert matplotlib.rcParams['text.parse_math']
