#!/usr/bin/env python
"""Publishes a trained network for inference; with --onnx, also exports it.

Writes OUT-XXXXXXXX.pth, with a hash in its name, without auxiliary decoders, optimizer and
schedulers. The file carries a config for inference, MMSegmentation's EncoderDecoder:
MMSegInferencer(None, FILE) runs it.

An exported graph maps decoded float32 images (N, 3, H, W), RGB in [0, 255], to logits
(N, classes, H, W). It includes normalisation and padding; N, H and W are free.

Examples:
    mmseg-cct publish-model work_dirs/cct_r50_voc_1464 cct_r50_voc_1464.pth --onnx
    mmseg-cct publish-model CONFIG CHECKPOINT cct_r50_voc_1464.pth
"""

import argparse

from mmseg_cct.cli.arguments import add_domain, add_overwrite, add_run, integer_from, tool_parser
from mmseg_cct.cli.start import register, running
from mmseg_cct.utils.files import output_file


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    add_run(parser)
    parser.add_argument(
        'target', metavar='OUT', help='path of the published file, without the hash'
    )
    parser.add_argument('--onnx', action='store_true', help='write OUT-XXXXXXXX.onnx too')
    parser.add_argument(
        '--size',
        nargs=2,
        type=integer_from(1),
        metavar=('H', 'W'),
        help='fix the size of the images of --onnx (default: any size)',
    )
    add_domain(parser)
    parser.add_argument(
        '--half', action='store_true', help='keep kernels in float16: half the size, same loading'
    )
    add_overwrite(parser)
    return parser.parse_intermixed_args()


def main() -> None:
    """Publishes and exports the model."""
    args = parse_args()
    with running(args):
        register()
        from pathlib import Path

        from mmseg_cct.apis.export import export_onnx
        from mmseg_cct.apis.publish import publish
        from mmseg_cct.apis.run import Run

        run = Run.open(args.run, args.checkpoint).of_domain(args.domain)
        published = publish(run, args.target, args.overwrite, args.half)
        file = Path(published.checkpoint)
        print(f'{file}: {file.stat().st_size / 2**20:.1f} MiB')
        if not args.onnx:
            return
        model, file = published.load_model('cpu'), file.with_suffix('.onnx')
        output_file(file, [run.checkpoint], overwrite=args.overwrite, option='OUT')
        difference = export_onnx(model, file, tuple(args.size) if args.size else None)
    compared = 'not compared with PyTorch, because onnxruntime is not installed'
    if difference is not None:
        compared = f'logits equal to those of PyTorch (to {difference:.0e} of the largest)'
    print(f'{file}: {compared}')
    if model.test_cfg.get('mode') == 'slide':
        print('the graph takes an image whole; tests and predict take it in windows')


if __name__ == '__main__':
    main()
