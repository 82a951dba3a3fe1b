#!/usr/bin/env python
"""Compares finished trainings in DIR/report.html: IoU by class, confusions, the hardest images.

DIR/report.json holds the same without the pictures.

Examples:
    mmseg-cct report supervised=work_dirs/supervised_mbv2_camvid_50 \\
        CCT=work_dirs/cct_mbv2_camvid_50 --out work_dirs/report
"""

import argparse
from pathlib import Path

from mmseg_cct.cli.arguments import add_domain, add_palette, tool_parser
from mmseg_cct.cli.start import register, running
from mmseg_cct.config.shipped import find_run
from mmseg_cct.errors import UserError, printable


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument(
        'runs',
        nargs='+',
        metavar='NAME=WORK_DIR',
        help='work directory of each run, or a checkpoint in one, and its name in the report',
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the report')
    add_domain(parser)
    add_palette(parser)
    return parser.parse_args()


def main() -> None:
    """Writes the report."""
    args = parse_args()
    with running(args):
        work_dirs: dict[str, str] = {}
        for run in args.runs:
            name, separator, work_dir = run.partition('=')
            if Path(run).exists() or not separator:
                name, work_dir = Path(run).absolute().name, run
            elif not Path(work_dir).exists():  # a name may hold a = too
                name, _, work_dir = run.rpartition('=')
            if name in work_dirs:
                raise UserError(run, f'{name} is {work_dirs[name]} already', 'a name of its own')
            find_run(work_dir)
            work_dirs[name] = work_dir
        register()
        from mmseg_cct.apis.report.report import write_report
        from mmseg_cct.apis.report.scores import score_table
        from mmseg_cct.apis.run import Run
        from mmseg_cct.utils.templates import markdown_table

        runs = [
            Run.open(work_dir, name=name).of_domain(args.domain)
            for name, work_dir in work_dirs.items()
        ]
        report = write_report(runs, args.out, args.palette)
        table = score_table(report.scores, report.runs)
        header, *rows = [[*map(printable, line)] for line in (table.header, *table.rows)]
        print(markdown_table(header, rows), '', printable(report.verdict), sep='\n')
        print(f'wrote {Path(args.out, "report.html")}')


if __name__ == '__main__':
    main()
