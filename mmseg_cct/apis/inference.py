"""Resumable prediction for folders of images."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import init_default_scope
from mmengine.runner.checkpoint import load_state_dict
from mmseg.apis import inference_model, init_model
from mmseg.registry import DATASETS, TRANSFORMS
from PIL import Image

from mmseg_cct.checks.data import warn
from mmseg_cct.checks.failures import config_errors_as_one_line, first_image_guards
from mmseg_cct.checks.stages import check_components
from mmseg_cct.checks.weights import require_matching_weights
from mmseg_cct.config.class_names import leaf_sets
from mmseg_cct.config.domains import pipeline_for_tests, require_domain
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.data_folders import data_folders
from mmseg_cct.engine.checkpoints import (
    read_checkpoint,
    require_checkpoint,
    warn_of_other_preprocessing,
    weights,
)
from mmseg_cct.errors import UserError
from mmseg_cct.utils import image_files
from mmseg_cct.utils.image_files import IMAGE_SUFFIXES, find_files, find_images
from mmseg_cct.utils.image_record import ImageCounts, file_stamp, forget_changed, record_origin
from mmseg_cct.utils.palette import chosen_colours, class_colours
from mmseg_cct.utils.shares import gather, on_first_process, own_share, progress_bar
from mmseg_cct.visualization.label_maps import legend_picture

from .device import default_device

# Names the model of the predictions in a folder, so that two models never share one.
RECORD = 'prediction.json'
_LEGEND_WIDTH = 640  # pixels
_VIDEO_SUFFIXES = ('.mp4', '.avi', '.mov', '.mkv', '.webm', '.m4v', '.mpg', '.mpeg', '.wmv')


def predict_images(
    config_file: str,
    checkpoint: str,
    images: str,
    out: str,
    *,
    options: dict[str, Any] | None = None,
    device: str | None = None,
    opacity: float = 0.5,
    domain: str | None = None,
    palette: str | None = None,
) -> ImageCounts:
    """Segments images and writes `masks/NAME.png` and `overlays/NAME.png` for each.

    A mask is a palette PNG of class ids, in the order of the classes that the checkpoint names, and
    `legend.png` shows their colours. Both files have the size of the image, but an overlay has the
    names of the classes in it below. An image whose files are there is skipped, unless it has
    changed since; one that cannot be read is reported, and the rest goes on. Connected processes
    share the images.

    Args:
        config_file: The config of the model.
        checkpoint: The weights.
        images: An image, or a folder that is searched with its subfolders.
        out: Folder for the predictions.
        options: Settings of the config to override, by dotted key.
        device: Where to compute; by default the GPU of this process, if any.
        opacity: Weight of the class colours in an overlay, in [0, 1].
        domain: Which domain the images are from, if the model has several.
        palette: A data set of MMSeg or a JSON file with the colours of the classes; by default
            those of the training.

    Returns:
        Counts of written, skipped and failed images. A `UserError` says where a file is missing,
        the checkpoint does not fit the config, or the folder holds predictions of another model or
        domain.
    """
    config = load_config(config_file, options or {})
    require_checkpoint(checkpoint)
    require_domain(config, domain)
    domains = {} if domain is None else {'domain': domain}
    colours = {} if palette is None else {'palette': palette}
    origin = model_origin(config, checkpoint, opacity=opacity, **domains, **colours)

    def list_images() -> tuple[list[tuple[str, Path]], int]:
        found = _find_images(images)
        read = {Path(images)} if os.path.isdir(images) else set()
        record_origin(Path(out, RECORD), origin, 'predictions', read | data_folders(config))
        # The overlay is written last, so it stands for both files.
        stamps = {name: file_stamp(path) for name, path in found.items()}
        if others := forget_changed(out, stamps, 'overlays'):
            warn(
                f'{out}: {len(others)} predictions are of images that are not in {images}, the '
                f'first is masks/{others[0]}.png; expected another --out, or that you remove them'
            )
        done = Path(out, 'overlays')
        todo = [(name, path) for name, path in found.items() if not (done / f'{name}.png').exists()]
        return todo, len(found) - len(todo)

    todo, skipped = on_first_process(list_images)
    counts = ImageCounts(skipped=skipped)
    if not todo:
        return counts
    model = load_model(config, checkpoint, device, domain)
    read_image = image_reader(model.cfg)
    meta = model.dataset_meta
    if palette is not None:
        meta['palette'] = chosen_colours(palette, meta['classes'])
    legend = legend_picture(meta['classes'], meta['palette'], _LEGEND_WIDTH)
    image_files.write_png(Path(out, 'legend.png'), Image.fromarray(legend))
    share = own_share(todo)
    guards = first_image_guards(config)
    with progress_bar(len(share), skipped) as bar:
        for name, path in share:
            try:
                image = read_image(path)
            except Exception as error:  # Pillow and OpenCV raise nearly anything on a corrupt file
                counts.add_unreadable(path, error)
            else:
                with next(guards):
                    _predict(model, image, Path(out), name, opacity)
                counts.written += 1
            bar.update()
    return ImageCounts.merged(gather(counts))


def load_model(
    config: Config,
    checkpoint: str,
    device: str | None = None,
    domain: str | None = None,
    content: Mapping[str, Any] | None = None,
) -> Any:
    """Builds a segmentor for `mmseg.apis.inference_model`, in evaluation mode.

    It has `dataset_meta` (classes and palette) and `cfg`. The checkpoint may lack the auxiliary
    decoders; other missing weights or shapes are a `UserError`. `content` is what it holds, where
    it has been read already. The device is by default the GPU of this process, if any.
    """
    check_components(config, section='model')
    device = device or default_device()
    if domain is not None:
        pipeline = pipeline_for_tests(config, domain)
        config.test_pipeline = [*pipeline, dict(type='SetDomain', domain=domain)]
    elif config.get('test_pipeline') is None:
        config.test_pipeline = pipeline_for_tests(config)
    check_components(config, section='test_pipeline')
    with config_errors_as_one_line(config):
        model = init_model(config, device=device)
    loaded = read_checkpoint(checkpoint) if content is None else content
    require_matching_weights(model, loaded, checkpoint, training=False)
    warn_of_other_preprocessing(config, loaded, checkpoint)
    load_state_dict(model, weights(loaded))

    num_classes = (model if domain is None else model.domains[domain]).num_classes
    if num_classes > 256:
        raise UserError(f'{checkpoint}: {num_classes} classes; a palette PNG holds at most 256')
    meta = (loaded.get('meta') or {}).get('dataset_meta') or {}
    if domain is not None:
        meta = meta.get('domains', {}).get(domain, {})
    meta = {**_config_meta(config, domain), **meta}
    # names and colours where they are missing or of another number of classes
    if len(meta.get('classes') or ()) != num_classes:
        meta['classes'] = tuple(f'class {index}' for index in range(num_classes))
    if len(meta.get('palette') or ()) != num_classes:
        meta['palette'] = [list(colour) for colour in class_colours(meta['classes'])]
    model.dataset_meta = meta
    return model


def image_reader(config: Config) -> Callable[[str | os.PathLike], np.ndarray]:
    """Returns what reads an image `(H, W, C)` for `mmseg.apis.inference_model`.

    Of a config with `LoadChannels` it takes that out of the test pipeline, for MMSeg replaces the
    loader of images that are read already, and keeps its arguments.
    """
    first = config.test_pipeline[0]
    if first['type'] != 'LoadChannels':
        return image_files.read_image
    decode = TRANSFORMS.build(first).decode
    config.test_pipeline[0] = dict(type='LoadImageFromNDArray')

    def read(path: str | os.PathLike) -> np.ndarray:
        image_files.require_file(path)
        return decode(Path(path).read_bytes())

    return read


def model_origin(config: Config, checkpoint: str, **others: Any) -> dict[str, Any]:
    """Describes for `record_origin` everything that changes outputs, `others` included."""
    used = {key: config.get(key) for key in ('model', 'test_pipeline', 'test_dataloader')}
    settings = hashlib.sha256(Config(used).pretty_text.encode()).hexdigest()
    origin: dict[str, Any] = {'config': config.filename, 'checkpoint': os.path.abspath(checkpoint)}
    origin |= {'settings': settings[:16], **others}
    if os.path.isfile(checkpoint):
        stat = os.stat(checkpoint)
        origin.update(bytes=stat.st_size, modified=stat.st_mtime)
    return origin


def warn_of_other_files(folder: str, images: Collection[Path]) -> None:
    """Logs which files of a folder are left out, as they are no images of a known format."""
    known = {*images}
    others = [path for path in find_files(folder) if path not in known and path.suffix]
    if others:
        kinds = ', '.join(sorted({path.suffix for path in others})[:5])
        warn(
            f'{folder}: {len(others)} of its files are left out ({kinds}), the first is '
            f'{others[0]}; expected {", ".join(IMAGE_SUFFIXES)}'
        )


def _find_images(images: str) -> dict[str, Path]:
    path = Path(images)
    if path.suffix.lower() in _VIDEO_SUFFIXES:
        raise UserError(
            f'{images}: a video; expected an image or a folder of images, such as its frames: '
            f'mkdir frames && ffmpeg -i {images} frames/%06d.jpg'
        )
    if path.is_file():
        return {path.stem: path}
    found = find_images(path)
    warn_of_other_files(images, found.values())
    return found


def _predict(model: Any, image: np.ndarray, out: Path, name: str, opacity: float) -> None:
    """Segments a loaded image and writes its mask, then its overlay."""
    palette = np.array(model.dataset_meta['palette'], dtype=np.uint8)
    labels = inference_model(model, image).pred_sem_seg.data[0].cpu().numpy().astype(np.uint8)
    overlay = image_files.as_rgb(image) * (1.0 - opacity) + palette[labels] * opacity
    shown = np.unique(labels)
    names = [model.dataset_meta['classes'][index] for index in shown]
    legend = legend_picture(names, palette[shown], image.shape[1])
    image_files.write_png(out / 'masks' / f'{name}.png', Image.fromarray(labels), palette)
    blended = Image.fromarray(np.vstack([overlay.round().astype(np.uint8), legend]))
    image_files.write_png(out / 'overlays' / f'{name}.png', blended)


def _config_meta(config: Config, domain: str | None) -> dict[str, Any]:
    """Classes and palette of the first data set in a config that names some."""
    init_default_scope(config.get('default_scope') or 'mmseg')
    for dataset in _datasets(config, domain):
        kind = dataset.get('type')
        kind = DATASETS.get(kind) if isinstance(kind, str) else kind
        if isinstance(kind, type) and issubclass(kind, BaseDataset):
            meta = {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}
            if classes := dataset.get('classes'):  # FolderDataset
                meta.update(classes=tuple(classes), palette=dataset.get('palette'))
            if meta.get('classes'):
                return meta
    return {}


def _datasets(config: Config, domain: str | None) -> Iterator[Any]:
    """Yields the settings of all sets, of a set of several domains those of one."""
    for split in ('test', 'val', 'train'):
        dataset = (config.get(f'{split}_dataloader') or {}).get('dataset')
        for _, leaf in leaf_sets(dataset):
            own = (leaf.get('domains') or {}).get(domain, leaf)
            yield from (each for _, each in leaf_sets(own))
