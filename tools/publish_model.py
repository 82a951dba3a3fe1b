#!/usr/bin/env python
"""Publishes a checkpoint for inference, and exports it to ONNX on demand.

Writes OUT-XXXXXXXX.pth, with a hash in its name, without auxiliary decoders, optimizer and
schedulers. The file carries a config for inference, MMSegmentation's EncoderDecoder:
MMSegInferencer(None, FILE) runs it.

An exported graph maps decoded float32 images (N, 3, H, W), RGB in [0, 255], to logits
(N, classes, H, W). It includes the normalisation; N is free, H and W are fixed by --size.

Example:
    python tools/publish_model.py work_dirs/cct_r50_voc_1464/iter_45550.pth cct_r50_voc_1464.pth \\
        --onnx --size 320 320
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmseg_cct.cli.arguments import add_overwrite, at_least, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import ONNX, output_file

if TYPE_CHECKING:
    from mmseg_cct.interop.export import Export


def parse_args() -> argparse.Namespace:
    """Reads the command line."""
    parser = tool_parser(__doc__)
    parser.add_argument('source', metavar='IN', help='checkpoint of a training')
    parser.add_argument(
        'target', metavar='OUT', help='path of the published file, without the hash'
    )
    parser.add_argument('--onnx', action='store_true', help='write OUT-XXXXXXXX.onnx too')
    parser.add_argument(
        '--size',
        nargs=2,
        type=at_least(1),
        metavar=('H', 'W'),
        help='size of the exported graph (default: that of the training images)',
    )
    parser.add_argument(
        '--config', help='config of the training (default: the one in the checkpoint)'
    )
    parser.add_argument(
        '--domain', metavar='NAME', help='domain to publish, for a model of several domains'
    )
    add_overwrite(parser)
    return parser.parse_args()


def main() -> None:
    """Publishes and exports the model."""
    args = parse_args()
    with running(args):
        from mmseg_cct.config.load import load_config
        from mmseg_cct.interop.export import export_onnx
        from mmseg_cct.interop.publish import publish_checkpoint

        config = None if args.config is None else load_config(args.config, {})
        file = publish_checkpoint(args.source, args.target, config, args.domain, args.overwrite)
        print(f'{file}: {file.stat().st_size / 2**20:.1f} MiB')
        if not args.onnx:
            return
        model = _load(file, imported=config is not None)
        size = tuple(args.size or model.data_preprocessor.size or ())
        if len(size) != 2:
            raise UserError('--size', '', 'the height and width of the images')
        target = file.with_suffix('.onnx')
        output_file(target, [args.source], begins=ONNX, overwrite=args.overwrite, option='OUT')
        _report(export_onnx(model, size, target), size)


def _load(file: Path, imported: bool) -> Any:
    """Loads a published model; the modules that its config names are `imported` by the user's."""
    from mmseg_cct.apis.inference import load_model
    from mmseg_cct.engine.checkpoints import read_checkpoint, saved_config

    config = saved_config(read_checkpoint(str(file)), str(file))
    if config is None:
        raise UserError(file, 'carries no config', '--config CONFIG')
    modules = (config.get('custom_imports') or {}).get('imports') or []
    own = {modules} if isinstance(modules, str) else set(modules)
    own -= {'mmseg_cct', 'mmseg_cct.plugin'}
    try:
        return load_model(config, str(file), 'cpu')
    except UserError as error:
        if imported or not own:
            raise
        expected = f'--config CONFIG, which imports {", ".join(sorted(own))}; a checkpoint may not'
        raise UserError(error.problems[0]._replace(expected=expected)) from error


def _report(done: Export, size: tuple[int, int]) -> None:
    from mmseg_cct.interop.export import TOLERANCE

    compared = 'not compared with PyTorch, because onnxruntime is not installed'
    if done.difference is not None:
        if not done.difference <= TOLERANCE:
            raise UserError(
                done.file,
                f'its logits differ from those of PyTorch by {done.difference:.1e} of the '
                f'largest, expected at most {TOLERANCE:.0e}: do not use it',
            )
        compared = f'logits equal to those of PyTorch (to {done.difference:.0e} of the largest)'
    print(f'{done.file}: images of {size[0]}x{size[1]}, {compared}')


if __name__ == '__main__':
    main()
