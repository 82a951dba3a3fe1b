"""Chooses the images to label next by a preview, where there is no training yet.

Of the images that the closed form is least certain of, it takes those whose features lie far from
one another and from those of the labelled images, as after a training.
"""

from itertools import chain
from pathlib import Path

import numpy as np

from mmseg_cct.datasets.files.image_files import training_dirs, validation_dirs
from mmseg_cct.datasets.files.leaks import common_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.processes import progress_bar
from mmseg_cct.utils.text import command_line, counted

from .listed_images import images_in
from .next_batch import (
    Batch,
    BatchRequest,
    batch_folder,
    choose,
    import_commands,
    write_batch,
)
from .preview import FolderFit
from .ranking import ScoredImage


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
