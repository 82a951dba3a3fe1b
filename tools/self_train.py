#!/usr/bin/env python
"""Self-training: a trained network labels the unlabelled images, a fresh one learns from them.

The teacher (the last checkpoint of WORK_DIR, or the one named) draws a mask for each unlabelled
image of the student's config, with 255 on the 20 % least confident pixels of each class. It also
measures on the validation images how often its masks are right: see DIR/round1/masks/report.md. The
student, the same or another network, then learns from real and drawn masks with strong views. With
--rounds 2 or more, each student teaches the next.

Run it again to resume: what is finished is skipped, stopped work continues where it was.

Examples:
    python tools/self_train.py work_dirs/teacher --student configs/cct/cct_mbv2-jpu_folder.py \\
        --out work_dirs/self_train
    python tools/self_train.py WORK_DIR --student CONFIG --rounds 2 --processes 8 --out DIR
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mmseg_cct.cli.arguments import add_cfg_options, add_device, add_launcher, at_least, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError

if TYPE_CHECKING:
    from mmseg_cct.studies.self_training import SelfTraining


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument(
        'teacher', metavar='WORK_DIR', help='work directory of the teacher, or its checkpoint'
    )
    parser.add_argument(
        '--student', required=True, metavar='CONFIG', help='config that the students train'
    )
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of all rounds')
    parser.add_argument(
        '--rounds', type=at_least(1), default=1, metavar='N', help='number of students (default: 1)'
    )
    parser.add_argument(
        '--drop', type=float, default=0.2, metavar='SHARE',
        help='share of the least confident pixels of each class, which are ignored (default: 0.2)',
    )  # fmt: skip
    parser.add_argument(
        '--tta',
        action=argparse.BooleanOptionalAction,
        help="average over the views of the config's tta_pipeline (default: on a GPU; on a CPU it "
        'takes most of the time)',
    )
    parser.add_argument(
        '--held-out', type=at_least(0), default=200, metavar='N',
        help='measure the masks on at most N validation images (default: 200)',
    )  # fmt: skip
    parser.add_argument(
        '--processes', type=at_least(1), default=1, metavar='N',
        help='processes for masks and training, each with a GPU if there are any (default: 1)',
    )  # fmt: skip
    parser.add_argument(
        '--pictures', type=at_least(0), default=6, help='images in each grid (default: 6)'
    )
    parser.add_argument(
        '--masks-of', type=at_least(1), metavar='ROUND',
        help='only draw the masks of this round; with --launcher, as one of several processes',
    )  # fmt: skip
    add_device(parser)
    add_launcher(parser)
    add_cfg_options(parser, takes_method=False)
    parser.add_argument(
        '--labels', type=at_least(1), metavar='N', help='number of labelled images of the student'
    )
    return parser.parse_args()


def main() -> int:
    """Runs all rounds; returns 1 if one fails and 130 after Ctrl-C."""
    args = parse_args()
    with running(args):
        from mmseg_cct.studies.self_training import SelfTraining

        if not 0 <= args.drop < 1:
            raise UserError(f'--drop {args.drop}', '', 'a share in [0, 1)')
        if args.launcher != 'none' and args.masks_of is None:
            raise UserError('--launcher', 'for --masks-of ROUND alone', '--processes')
        tta = uses_gpu(args.device) if args.tta is None else args.tta
        training = SelfTraining(
            args.teacher, args.student, args.cfg_options, Path(args.out), args.drop, args.rounds,
            tta, args.held_out,
        )  # fmt: skip
        if args.masks_of is not None:
            return draw(args, training, args.masks_of)
        try:
            for number in range(1, args.rounds + 1):
                if code := finish(args, training, number):
                    return code
        except KeyboardInterrupt:
            print('stopped; the same command goes on from here', file=sys.stderr)
            return 130
        print(f'wrote {training.write_report()}')
    return 0


def uses_gpu(device: str | None) -> bool:
    """Whether masks are drawn on a GPU."""
    from mmengine.device import get_device

    return (device or get_device()) != 'cpu'


def draw(args: argparse.Namespace, training: SelfTraining, number: int) -> int:
    """Draws the masks of a round; returns 1 if an image could not be read."""
    from mmseg_cct.utils.shares import connected

    with connected(args.launcher) as rank:
        counts = training.draw(number, args.device, args.pictures)
    if rank:  # the first process speaks for all
        return 0
    for line in counts.failed:
        print(f'error: {line}', file=sys.stderr)
    if counts.failed:
        return 1
    masks = training.folder(number) / 'masks'
    print(f'round {number}: {counts.describe(str(masks))}')
    print((masks / 'report.md').read_text(encoding='utf-8').split('\n\n')[2])
    return 0


def finish(args: argparse.Namespace, training: SelfTraining, number: int) -> int:
    """Draws what is left of a round's masks, trains and tests its student."""
    from mmseg_cct.studies.execution import execute, launched

    if training.is_drawn(number):
        training.record()
    elif args.processes == 1:
        if code := draw(args, training, number):
            return code
    else:
        command = [*sys.argv, '--masks-of', str(number)]
        if code := subprocess.run(launched(command, args.processes)).returncode:
            return code
    run = training.prepare(number)
    failures = execute([run], Path(__file__).parent, [{}], args.processes)
    for line in failures:
        print(line, file=sys.stderr)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
