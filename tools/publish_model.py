#!/usr/bin/env python
"""Publishes a checkpoint for inference; with --onnx, also exports it.

Writes OUT-XXXXXXXX.pth, with a hash in its name, without auxiliary decoders, optimizer and
schedulers. The file carries a config for inference, MMSegmentation's EncoderDecoder:
MMSegInferencer(None, FILE) runs it.

An exported graph maps decoded float32 images (N, 3, H, W), RGB in [0, 255], to logits
(N, classes, H, W). It includes normalisation and padding; N, H and W are free where the network
allows. Its masks of a few images are compared with those of predict.

Example:
    python tools/publish_model.py work_dirs/cct_r50_voc_1464/iter_45550.pth cct_r50_voc_1464.pth \\
        --onnx
"""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmseg_cct.cli.arguments import add_overwrite, at_least, tool_parser
from mmseg_cct.cli.start import running
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import output_file

if TYPE_CHECKING:
    from mmseg_cct.apis.export import Export

# Images to compare an export on, and the least share of equal pixels, in per cent.
COMPARED, AGREEMENT = 4, 99.0


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
        help='fix the size that images are resized to (default: as in tests, any if possible)',
    )
    parser.add_argument(
        '--images',
        metavar='DIR',
        help='images to compare the export on (default: those that the config names, if there)',
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
        from mmseg_cct.apis.export import export_onnx
        from mmseg_cct.apis.publish import publish_checkpoint
        from mmseg_cct.config.load import load_config

        config = None if args.config is None else load_config(args.config, {})
        file = publish_checkpoint(args.source, args.target, config, args.domain, args.overwrite)
        print(f'{file}: {file.stat().st_size / 2**20:.1f} MiB')
        if not args.onnx:
            return
        model = _load(file, imported=config is not None)
        target = file.with_suffix('.onnx')
        output_file(target, [args.source], overwrite=args.overwrite, option='OUT')
        done = export_onnx(model, target, tuple(args.size) if args.size else None)
        _report(done, model, _images(args), resized=bool(args.size))


def _load(file: Path, imported: bool) -> Any:
    """Loads a published model; the modules that its config names are `imported` by the user's."""
    from mmseg_cct.apis.inference import load_model
    from mmseg_cct.engine.checkpoints import read_checkpoint
    from mmseg_cct.engine.foreign_config import saved_config

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


def _images(args: argparse.Namespace) -> list[Path]:
    """Chooses images for the comparison: the given ones, or those of the training's data."""
    from mmseg_cct.config.walk import leaf_sets
    from mmseg_cct.datasets.files.image_files import find_images
    from mmseg_cct.engine.checkpoints import read_checkpoint
    from mmseg_cct.engine.foreign_config import saved_config

    if args.images:
        return _some(find_images(args.images))
    config = saved_config(read_checkpoint(args.source), args.source) or {}
    for _, dataset in leaf_sets((config.get('test_dataloader') or {}).get('dataset')):
        prefix = dict(dataset.get('data_prefix') or {})
        folder = Path(
            dataset.get('data_root') or '', dataset.get('image_dir') or prefix.get('img_path', '-')
        )
        if folder.is_dir():
            return _some(find_images(folder))
    return []


def _some(found: dict[str, Path]) -> list[Path]:
    return [*found.values()][:: -(-len(found) // COMPARED)]


def _report(done: Export, model: Any, images: list[Path], resized: bool) -> None:
    from mmseg_cct.apis.export import TOLERANCE, metadata, size_in_tests

    size = '{}x{}'.format(*(done.size or size_in_tests(model)))
    size = f'any size ({size} in tests)' if done.size is None else size
    compared = 'not compared with PyTorch, because onnxruntime is not installed'
    if done.difference is not None:
        if not done.difference <= TOLERANCE:
            raise UserError(
                done.file,
                f'its logits differ from those of PyTorch by {done.difference:.1e} of the largest',
                f'at most {TOLERANCE:.0e}: do not use it',
            )
        compared = f'logits equal to those of PyTorch (to {done.difference:.0e} of the largest)'
    print(f'{done.file}: images of {size}, {compared}')
    if cannot := metadata(model)['way']['cannot']:
        print(f'predict_onnx.py refuses it: {", ".join(cannot)}')
    elif not images:
        print('no image to compare its masks on: name some with --images DIR')
    elif done.difference is not None:
        _compare_masks(done, model, images, resized)


def _compare_masks(done: Export, model: Any, images: list[Path], resized: bool) -> None:
    """Compares the masks of predict_onnx.py with those of predict; prints how many pixels agree."""
    import onnxruntime

    from mmseg_cct.apis.inference import image_reader
    from mmseg_cct.apis.segment import segment

    script = runpy.run_path(str(Path(__file__).with_name('predict_onnx.py')))
    session = onnxruntime.InferenceSession(str(done.file), providers=['CPUExecutionProvider'])
    notes = script['read_notes'](session)
    agree, refused = [], 0
    for expected in segment(model, images, image_reader(model.cfg)):
        if expected.error is not None:
            continue
        try:
            found = script['segment'](session, notes, script['load'](expected.key, notes['way']))
        except ValueError:  # of another shape than the graph
            refused += 1
        else:
            agree.append((found == expected.labels).mean())
    if refused:
        print(f'predict_onnx.py refuses {refused} of {len(images)} images: of another shape')
    if not agree:
        return
    share, many = 100 * min(agree), f'{len(agree)} image{"s" * (len(agree) > 1)}'
    if share < AGREEMENT and not resized:
        raise UserError(
            done.file,
            f'its masks of {many} equal those of predict in {share:.1f} % of the pixels',
            f'at least {AGREEMENT} %: do not use it',
        )
    why = ', because --size resizes in another way' if share < AGREEMENT else ''
    print(f'masks of {many}: at least {share:.1f} % of the pixels as by predict{why}')


if __name__ == '__main__':
    main()
