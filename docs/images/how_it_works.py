"""Draws how_it_works.svg, the diagram of the home page: `python docs/images/how_it_works.py`."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BLUE, ORANGE, GREY = '#3b6fb6', '#d9822b', '#6b7280'
matplotlib.rcParams.update({'svg.hashsalt': 'how_it_works', 'font.family': 'DejaVu Sans'})

figure = Figure(figsize=(10.4, 3.9))
axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 10.4), ylim=(0, 3.9))
axes.set_axis_off()


def box(x, y, width, text, colour, height=0.62):
    patch = FancyBboxPatch(
        (x, y - height / 2), width, height, boxstyle='round,pad=0.02', fc='white', ec=colour, lw=1.8
    )
    axes.add_patch(patch)
    axes.text(x + width / 2, y, text, ha='center', va='center', fontsize=10.5, color='#111827')


def arrow(start, end, colour, **style):
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle='-|>', mutation_scale=12, color=colour, lw=1.6, **style
        )
    )


# labelled images, then unlabelled ones, through one encoder
box(0.15, 3.2, 1.55, 'labelled\nimages', BLUE)
box(0.15, 1.45, 1.55, 'unlabelled\nimages', ORANGE)
box(2.35, 2.3, 1.25, 'encoder h', GREY, height=2.4)
arrow((1.75, 3.2), (2.3, 3.2), BLUE)
arrow((1.75, 1.45), (2.3, 1.45), ORANGE)

box(4.6, 3.2, 1.9, 'main decoder g', BLUE)
box(4.6, 2.1, 1.9, 'main decoder g\nor its EMA teacher', ORANGE)
box(4.6, 0.75, 1.35, 'perturb z\nK times', ORANGE)
box(6.4, 0.75, 1.75, 'auxiliary decoders\n$g_a^1 … g_a^K$', ORANGE)
arrow((3.65, 3.2), (4.55, 3.2), BLUE)
arrow((3.65, 2.1), (4.55, 2.1), ORANGE)
arrow((3.65, 1.45), (4.55, 0.8), ORANGE)
axes.text(4.05, 3.32, 'z', fontsize=11, style='italic', ha='center')
axes.text(4.05, 2.2, 'z', fontsize=11, style='italic', ha='center')
axes.text(4.02, 1.28, 'z', fontsize=11, style='italic', ha='center')
arrow((6.0, 0.75), (6.35, 0.75), ORANGE)

box(8.75, 3.2, 1.5, '$L_s$\ncross-entropy', BLUE)
box(8.75, 1.45, 1.5, '$L_u$\nconsistency', ORANGE)
arrow((6.55, 3.2), (8.7, 3.2), BLUE)
arrow((6.55, 2.1), (8.7, 1.6), ORANGE, linestyle=(0, (4, 2)))
axes.text(7.65, 2.02, 'ŷ, a constant', fontsize=9.5, color=GREY, ha='center', rotation=-12)
arrow((8.2, 0.75), (8.7, 1.25), ORANGE)

axes.text(
    5.2,
    0.14,
    '$L = L_s + ω_u L_u$        After training the auxiliary decoders are dropped.',
    ha='center',
    fontsize=11,
    color='#111827',
)
figure.savefig(Path(__file__).with_suffix('.svg'), metadata={'Date': None})
