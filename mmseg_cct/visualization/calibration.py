"""Files of a calibration: the reliability diagrams and their numbers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mmseg_cct.evaluation.calibration import Reliability, calibration_record, shown
from mmseg_cct.utils.files import write_atomic

from .figures import png_bytes

RECORD, FIGURE = 'calibration.json', 'calibration.png'


def plot_reliability(reliability: Mapping[str, Reliability]) -> Figure:
    """Plots the share of right pixels by each score, over bars of the share of all pixels."""
    figure = Figure(figsize=(4 * len(reliability), 4), layout='constrained')
    panels = figure.subplots(1, len(reliability), squeeze=False)[0]
    for axes, (name, each) in zip(panels, shown(reliability).items()):
        axes.bar(each.scores, each.pixels / each.pixels.sum(), 0.02, color='0.8', label='pixels')
        axes.plot([0, 1], [0, 1], color='0.5', linestyle=':', label='calibrated')
        axes.plot(each.scores, each.right / each.pixels, 'o-', markersize=3, label='right')
        axes.set_title(f'right above wrong: {reliability[name].separation:.3f}', fontsize=10)
        axes.set_xlabel(name)
        axes.set_ylabel('share')
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(0, 1.02)
        axes.legend(fontsize=8, loc='upper left')
    return figure


def write_calibration_files(
    folder: str | Path, reliability: Mapping[str, Reliability], **record: Any
) -> dict[str, Any]:
    """Writes `calibration.png` and `calibration.json`, and returns the content of the latter."""
    record = calibration_record(reliability) | record
    write_atomic(Path(folder, FIGURE), png_bytes(plot_reliability(reliability)))
    write_atomic(Path(folder, RECORD), json.dumps(record, indent=1).encode() + b'\n')
    return record
