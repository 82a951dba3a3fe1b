#!/usr/bin/env python
"""Writes the whole config of a run, to launch it with MMSegmentation's own tools.

Examples:
    mmseg-cct config configs/cct/cct_r50_voc_1464.py --method unimatch --labels 183 \\
        --out unimatch_r50_voc_183.py
"""

import argparse

from mmseg_cct.cli.arguments import add_cfg_options, add_overwrite, tool_parser
from mmseg_cct.cli.start import register, running

_HEADER = '# A whole config, as mmseg-cct config writes it.\n'


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('config', help='the config file')
    parser.add_argument('--out', metavar='FILE', help='where to write it (default: print it)')
    add_overwrite(parser)
    add_cfg_options(parser)
    return parser.parse_args()


def main() -> None:
    """Writes or prints the config."""
    args = parse_args()
    with running(args):
        register()
        from mmengine.config import Config

        from mmseg_cct.apis.prepare import LAUNCHER_STEPS, Request, prepare
        from mmseg_cct.config.load import load_config
        from mmseg_cct.datasets.leaves import data_folders
        from mmseg_cct.utils.files import output_file, write_text

        config = load_config(args.config, args.options)
        config = prepare(config, Request(options=args.options), LAUNCHER_STEPS)
        if args.out is not None:
            inputs = [args.config, *data_folders(config)]
            output_file(args.out, inputs, overwrite=args.overwrite)
        # with yapf's layout, which a run leaves out to save time
        text = Config(config.to_dict()).pretty_text
        if args.out is None:
            print(text)
        else:
            write_text(args.out, f'{_HEADER}{text}\n')
            print(f'wrote {args.out}')


if __name__ == '__main__':
    main()
