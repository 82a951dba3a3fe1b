"""What the masks so far give for all photos, before any training, and which to label next by it.

A linear discriminant on frozen features is fitted to the masks, which takes a fraction of a second,
and predicts the photos. A labelled one is predicted by the fit to the others, so its prediction
says what the masks are worth. Of the photos that it is least certain of, a batch takes those whose
features lie far from one another and from those of the labelled images, as after a training.
"""

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch

from mmseg_cct.apis.prediction import CONFIDENCE, MASKS, MEANS, RECORD, write_predictions
from mmseg_cct.apis.predictor import Segmented
from mmseg_cct.datasets.files.image_files import (
    find_images,
    find_masks,
    read_list,
    training_dirs,
    validation_dirs,
)
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.datasets.folder_summary import summarize_folder
from mmseg_cct.engine.closed_form import FEWEST_TO_CHOOSE
from mmseg_cct.engine.doubtful_masks import JudgedMask, contradictions, fit_masks
from mmseg_cct.engine.frozen_features import (
    FINE,
    WhitenedFeatures,
    load_encoder,
    read_ahead,
    read_picture,
)
from mmseg_cct.engine.prediction import compare
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_text
from mmseg_cct.utils.output_folder import OutputFolder, file_stamp
from mmseg_cct.utils.processes import ImageCounts, progress_bar
from mmseg_cct.utils.templates import Table
from mmseg_cct.utils.text import command_line, counted

from .listed_images import images_in
from .next_batch import Batch, BatchRequest, batch_folder, choose, import_commands, write_batch
from .ranking import ScoredImage
from .review import LARGEST, PageImage, image_page, label_layer, label_legend, shrink

PAGE = 'preview.html'


@dataclass(frozen=True)
class PreviewRequest:
    """The options of `mmseg-cct preview`, which explains them."""

    data: str
    classes: Sequence[str]
    out: str
    images: str | None = None
    image_suffix: str | None = None
    mask_suffix: str = '.png'
    device: str | None = None
    opacity: float = 0.5
    number: int = 30
    held_out: str | None = None


class Preview(NamedTuple):
    """What a preview found."""

    fit: 'FolderFit'
    twins: list[tuple[str, str]]  # equal images with different masks, by name
    counts: ImageCounts


class FolderFit:
    """The closed form of a data folder, which segments image files as a `Predictor` does.

    Args:
        request: The data folder, its classes, suffixes and held-out masks, and where to compute.
        model: A model's config, whose backbone gives the features.
        photos: More images, which will be predicted, by name.

    Raises:
        UserError: There is no mask, an image or mask is wrong, the masks have fewer than two
            classes, or the weights of the backbone cannot be had.
    """

    def __init__(
        self,
        request: PreviewRequest,
        model: Mapping[str, Any],
        photos: Mapping[str, str] | None = None,
    ) -> None:
        self.data, classes, suffix = request.data, request.classes, request.image_suffix
        image_dir, mask_dir = training_dirs(self.data)
        self.images = find_images(image_dir, suffix)
        self.masks = find_masks(mask_dir, request.mask_suffix)
        if not self.masks:
            first = command_line('next_batch', '--images', image_dir, '-n', '10', '--out', 'batch0')
            raise UserError(mask_dir, 'no masks yet', f'those of some images; to choose: {first}')
        # checks each mask; photos that cannot be read are told when they are predicted
        labeled = {name: path for name, path in self.images.items() if name in self.masks}
        images = labeled or self.images
        summarize_folder(self.data, classes, images, request.mask_suffix, image_suffix=suffix)
        for name in read_list(request.held_out) if request.held_out else ():
            self.masks.pop(name, None)
        self.meta: dict[str, Any] = dict(classes=tuple(classes), palette=class_colors(classes))
        pool = sorted({*self.images.values(), *(photos or {}).values()})
        encoder = load_encoder(model, request.device, FINE)
        self.features = WhitenedFeatures(encoder, model, pool, self.data)
        self.fitted = fit_masks(self.features, self.images, self.masks, len(classes))
        present = [name for name, iou in zip(classes, self.fitted.ious) if not np.isnan(iou)]
        if len(present) < 2:
            names = ', '.join(present) or 'all 255'
            raise UserError(mask_dir, f'they have {names}', 'two classes, to tell them apart')
        # classes that no mask has: none of their pixels is predicted
        self.absent = [name for name in classes if name not in present]

    @property
    def digest(self) -> str:
        """Of what its predictions depend on: encoder, masks and classes."""
        masks = [(name, file_stamp(path)) for name, path in self.masks.items()]
        content = repr((self.features.digest, masks, self.meta))
        return hashlib.sha256(content.encode(errors='replace')).hexdigest()[:16]

    def __call__(self, paths: Iterable[str | os.PathLike]) -> Iterator[Segmented]:
        """Yields each image, in order, with its class ids or the error of reading it."""
        left_out = {self.images[name]: fitted for name, fitted in self.fitted.of_others.items()}
        for path, picture in read_ahead(map(str, paths)):
            if isinstance(picture, UserError):
                yield Segmented(Path(path), error=picture)
                continue
            discriminant = left_out.get(path, self.fitted.discriminant)
            logits = discriminant(self.features(path, picture))
            maps = torch.from_numpy(logits).permute(2, 0, 1).float()
            predicted = compare(maps, picture.shape[:2], False, with_confidence=True)
            levels = (np.asarray(predicted.confidence) * 255).round().astype(np.uint8)
            yield Segmented(Path(path), picture[..., ::-1], predicted.class_ids.numpy(), levels)


def preview(request: PreviewRequest, model: Mapping[str, Any]) -> Preview:
    """Predicts all photos by the closed form of the masks, as `predict` does, and writes a page.

    Features are kept, so a second call with more masks is quick; predictions that other masks have
    made are made again.

    Args:
        request: What to predict, and where to.
        model: A model's config, whose backbone gives the features.

    Returns:
        The fit, equal images with different masks, and counts of the photos.

    Raises:
        UserError: See `FolderFit`; or the folder holds something else.
    """
    image_dir, mask_dir = training_dirs(request.data)
    photos = find_images(image_dir, request.image_suffix)
    photos = find_images(request.images) if request.images else photos
    inputs: set[str | Path] = {image_dir, mask_dir}
    inputs |= {request.images} if request.images else set()
    made_with = dict(preview=str(Path(request.data).resolve()), opacity=request.opacity)
    with OutputFolder(request.out, RECORD, inputs, made_with) as folder:
        fit = FolderFit(request, model, photos)
        stamps = {name: [file_stamp(path), fit.digest] for name, path in photos.items()}
        counts = write_predictions(lambda: fit, photos, folder, stamps, request.opacity)
        twins = contradictions(fit.images, fit.masks)
        write_text(Path(request.out, PAGE), _page(fit, photos, request))
    return Preview(fit, twins, counts)


def preview_batch(request: BatchRequest, fit: FolderFit) -> Batch:
    """Chooses a batch from the photos without a mask and writes it with what the masks predict.

    Raises:
        UserError: If no image is left, or the folder holds a batch or something else.
    """
    out, source = Path(request.out), request.images or str(training_dirs(fit.data)[0])
    listed = images_in(source)
    labeled = {fit.images[name]: fit.images[name] for name in fit.masks}
    validation = validation_dirs(fit.data)
    excluded = [*request.without, *([str(validation[0])] if validation else [])]
    known = {*labeled, *chain.from_iterable(map(images_in, excluded))}
    left_out = {str(path) for _, path in common_images(known, listed)}
    candidates = {path: info for path, info in listed.items() if path not in left_out}
    if not candidates:
        raise UserError(source, 'no candidates left')
    with batch_folder(out, [source, *training_dirs(fit.data)], dict(preview=fit.data)):
        scored, failed = _score(fit, [*labeled, *candidates])
        ranked = sorted((image for image in scored if image.name in candidates), reverse=True)
        chosen = choose(ranked, [i for i in scored if i.name in labeled], request.number)

        def doubt_of(image: ScoredImage) -> tuple[np.ndarray, str]:
            (features,) = fit.features.of_files([image.name])
            if isinstance(features, UserError):  # it was replaced since
                raise features
            doubt = 1 - fit.fitted.discriminant.confidence(features)
            return doubt, f'mean confidence {1 - image.score:.2f}'

        caption = 'doubt: 1 minus the confidence of the preview'
        note = counted(len(candidates), 'candidate')
        batch = write_batch(request, ranked, chosen, candidates, fit, doubt_of, caption, note)
    batch.failed = failed
    if batch.table:
        batch.following = [
            *import_commands(request, Path(fit.data), batch.table),
            command_line('preview', fit.data, '--out', 'preview'),
            command_line('new_config', fit.data),
        ]
    return batch


def _score(fit: FolderFit, paths: list[str]) -> tuple[list[ScoredImage], list[str]]:
    """Scores images by 1 minus their mean confidence, with a line for each unreadable one."""
    scored, failed = list[ScoredImage](), list[str]()
    with progress_bar(len(paths), 0) as bar:
        for path, features in zip(paths, fit.features.of_files(paths)):
            bar.update()
            if isinstance(features, UserError):
                failed.append(str(features))
                continue
            confidence = fit.fitted.discriminant.confidence(features)
            z = features.reshape(-1, features.shape[-1]).mean(0, dtype=np.float32)
            z /= max(float(np.linalg.norm(z)), 1e-9)
            scored.append(ScoredImage(float(1 - confidence.mean()), path, {}, z.tolist()))
    return scored, failed


def _page(fit: FolderFit, photos: Mapping[str, str], request: PreviewRequest) -> str:
    """Writes the page: what the masks are worth, the masks, the least certain photos."""
    labeled = [_mask_image(fit, mask) for mask in fit.fitted.judged[: request.number]]
    labeled_paths = {fit.images[name] for name in fit.masks}
    with open(Path(request.out, MEANS), newline='', encoding='utf-8') as file:
        means = [(float(level), path) for level, path in [*csv.reader(file)][1:]]
    names = {path: name for name, path in photos.items()}
    uncertain = [(level, path) for level, path in means if path not in labeled_paths]
    chosen = uncertain[: request.number]
    unlabeled = [_photo_image(fit, request.out, names[path], path, level) for level, path in chosen]
    ious, is_enough = fit.fitted.ious, len(fit.masks) >= FEWEST_TO_CHOOSE
    rows = [
        [name, 'in no mask' if np.isnan(iou) else f'{100 * iou:.1f}' if is_enough else '']
        for name, iou in zip(fit.meta['classes'], ious)
    ]
    title = f'Preview: {counted(len(photos), "photo")} by {counted(len(fit.masks), "mask")}'
    summary = Table(['class', 'IoU'], rows)
    caption = 'doubt: 1 minus the confidence'
    return image_page(title, fit.fitted.worth, [*labeled, *unlabeled], caption, summary)


def _mask_image(fit: FolderFit, mask: JudgedMask) -> PageImage:
    picture = read_picture(fit.images[mask.name])
    classes, palette = fit.meta['classes'], fit.meta['palette']
    labels = shrink(read_mask(fit.masks[mask.name]).astype(np.uint8), LARGEST, cv2.INTER_NEAREST)
    expected = cv2.resize(mask.expected, labels.shape[::-1], interpolation=cv2.INTER_NEAREST)
    return PageImage(
        PurePath(mask.name),
        (picture.shape[1], picture.shape[0]),
        shrink(picture, LARGEST),
        f'contradicted by {mask.score:.2f}{", doubtful" if mask.is_doubtful else ""}',
        (
            label_layer('mask', labels, classes, palette),
            label_layer('what the other masks expect', expected, classes, palette),
        ),
        label_legend(labels, classes, palette, expected),
        'your masks',
    )


def _photo_image(fit: FolderFit, out: str, name: str, path: str, level: float) -> PageImage:
    """Makes the pictures of a predicted photo, from the files that were written for it."""
    picture, classes, palette = read_picture(path), fit.meta['classes'], fit.meta['palette']
    labels, confidence = (
        shrink(read_mask(Path(out, part, f'{name}.png')), LARGEST, cv2.INTER_NEAREST)
        for part in (MASKS, CONFIDENCE)
    )
    return PageImage(
        PurePath(name),
        (picture.shape[1], picture.shape[0]),
        shrink(picture, LARGEST),
        f'mean confidence {level:.2f}',
        (label_layer('preview', labels, classes, palette),),
        label_legend(labels, classes, palette),
        'your photos',
        1 - confidence / 255,
    )
