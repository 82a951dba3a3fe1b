"""Draws composition.svg, how a run is put together: `python docs/images/composition.py`."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BLUE, ORANGE, GREEN, GREY = '#3b6fb6', '#c2410c', '#15803d', '#6b7280'
INK = '#111827'
CHARACTER = 0.092  # width of a monospaced one of 11 points, in inches
matplotlib.rcParams.update({'svg.hashsalt': 'composition', 'font.family': 'DejaVu Sans'})

figure = Figure(figsize=(11.6, 4.7))
axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 11.6), ylim=(0, 4.7))
axes.set_axis_off()


def code(x, y, parts):
    """Writes coloured pieces of a line, and gives the middle of each."""
    middles = []
    for text, colour in parts:
        axes.text(x, y, text, family='DejaVu Sans Mono', fontsize=11, color=colour, va='center')
        middles.append(x + CHARACTER * len(text.rstrip()) / 2)
        x += CHARACTER * len(text)
    return middles


def card(x, title, lines, colour):
    patch = FancyBboxPatch(
        (x, 1.98), 2.45, 1.32, boxstyle='round,pad=0.04', fc='white', ec=colour, lw=1.8
    )
    axes.add_patch(patch)
    axes.text(x + 1.225, 3.1, title, ha='center', va='center', fontsize=11.5, color=colour)
    for row, line in enumerate(lines):
        axes.text(x + 1.225, 2.77 - 0.27 * row, line, ha='center', va='center', fontsize=9.5)


def arrow(start, end, colour):
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle='-|>', mutation_scale=11, color=colour, lw=1.4)
    )


COLOURS = (BLUE, ORANGE, GREEN, GREY)
XS = (0.35, 3.2, 6.05, 8.9)

# the command, whose parts are the four cards
_, *middles = code(
    0.25,
    4.32,
    [
        ('mmseg-cct train ', INK),
        ('cct/cct_r50_voc_1464 ', BLUE),
        ('--method unimatch ', ORANGE),
        ('--labels 183 ', GREEN),
        ('--cfg-options train_dataloader.batch_size=5', GREY),
    ],
)
for x, middle, colour in zip(XS, middles, COLOURS):
    arrow((middle, 4.16), (x + 1.225, 3.38), colour)

card(XS[0], 'config', ['model, data, schedule:', 'a config of CCT', 'in configs/cct'], BLUE)
card(
    XS[1],
    'method',
    ['segmentor, losses, hooks,', 'strong views: a file', 'in configs/methods'],
    ORANGE,
)
card(
    XS[2],
    'labels',
    ['how many images have', 'labels, by the lists', 'in its split_dir'],
    GREEN,
)
card(
    XS[3], 'options', ['any value of the config,', 'by its dotted key,', 'for this run alone'], GREY
)
for x in XS[1:]:
    axes.text(x - 0.2, 2.64, '+', ha='center', va='center', fontsize=16, color=INK)

# and what they make
for x, colour in zip(XS, COLOURS):
    arrow((x + 1.225, 1.9), (5.8 + (x - 4.6) * 0.12, 1.36), colour)
patch = FancyBboxPatch(
    (2.75, 0.62), 6.1, 0.66, boxstyle='round,pad=0.04', fc='#f3f4f6', ec=INK, lw=1.4
)
axes.add_patch(patch)
code(
    5.8 - CHARACTER * 15.5,
    1.08,
    [('work_dirs/', INK), ('unimatch', ORANGE), ('_r50_voc', BLUE), ('_183', GREEN), ('/', INK)],
)
axes.text(
    5.8,
    0.78,
    'the whole config, logs and checkpoints: a run needs nothing but this folder',
    ha='center',
    va='center',
    fontsize=9.5,
)
figure.savefig(Path(__file__).with_suffix('.svg'), metadata={'Date': None})
