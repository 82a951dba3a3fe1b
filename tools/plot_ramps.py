#!/usr/bin/env python
"""Plots all ramps and learning rates of a config, without training.

Example:
    python tools/plot_ramps.py configs/cct/cct_r50_voc_1464.py --out ramps.png
"""

import argparse
from pathlib import Path

from mmseg_cct.cli.arguments import add_cfg_options, add_overwrite, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.utils.files import require_new_file, require_outside


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='config of a training')
    parser.add_argument('--out', required=True, metavar='FILE', help='PNG file of the plot')
    add_cfg_options(parser)
    add_overwrite(parser)
    return parser.parse_args()


def main() -> None:
    """Writes the plot."""
    args = parse_args()
    with running(args):
        from mmseg_cct.analysis.ramps import planned_curves, plot_curves
        from mmseg_cct.config.load import load_config
        from mmseg_cct.datasets.data_folders import data_folders
        from mmseg_cct.utils.files import write_atomic
        from mmseg_cct.visualization.figures import png_bytes

        require_new_file(args.out, args.overwrite, [args.config])  # no folder, which has no suffix
        out = Path(args.out)
        if out.suffix.lower() != '.png':
            out = out.with_name(f'{out.name}.png')
        require_new_file(out, args.overwrite, [args.config])
        config = load_config(args.config, args.cfg_options)
        require_outside(out, data_folders(config), '--out')
        figure = plot_curves(planned_curves(config))
        write_atomic(out, png_bytes(figure))
    print(f'wrote {out}')


if __name__ == '__main__':
    main()
