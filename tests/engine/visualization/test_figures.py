import matplotlib
from matplotlib.figure import Figure

from mmseg_cct.engine.visualization.figures import outer_legend, png_bytes


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
