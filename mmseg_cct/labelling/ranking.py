"""Scores unlabelled images by the disagreement of the decoders.

The auxiliary decoders learn to agree with the main one under perturbations, so where they still
disagree the prediction is fragile. The score is a mean over pixels and decoders, in evaluation mode
and with the same random draws for every image, so it does not depend on the order of images. It is
the share of pixels with another predicted class, not the distance of L_u (Eq. 2): that shrinks
where predictions are flat, which is where they are often wrong.
"""

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmcv.transforms import Compose, LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.dist import get_rank
from torch import Tensor

from mmseg_cct.apis.predictor import without_annotations
from mmseg_cct.apis.run import Run
from mmseg_cct.config.compose import find_bank
from mmseg_cct.datasets.files.images import check_image, explain_unreadable
from mmseg_cct.engine.weights import weights
from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import append_line, read_lines
from mmseg_cct.utils.log import only_warnings
from mmseg_cct.utils.output_folder import file_stamp
from mmseg_cct.utils.processes import SharedImages, gather
from mmseg_cct.utils.text import library_errors_as_one_line

# A folder with a file of scores for each process.
SCORES = 'scores'


@dataclass(order=True)
class ScoredImage:
    """An image with the disagreement of its predictions."""

    score: float  # mean disagreement over decoders and pixels
    name: str  # path
    by_perturbation: dict[str, float] = field(compare=False)  # the score of its decoders
    z: list[float] = field(compare=False, repr=False)  # mean over positions, of length 1
    stamp: list[int] | None = field(compare=False, default=None)  # of the file that was scored


@dataclass
class Ranking:
    """Images by descending score, and a line for each unreadable one."""

    images: list[ScoredImage]
    failed: list[str]


class Disagreement(NamedTuple):
    """Where the decoders disagree about an image, on the CPU."""

    maps: Tensor  # (K, H, W), 1 where an auxiliary decoder gives another class than the main one
    z: Tensor  # (D,), the mean of z over positions, of length 1


def image_pipeline(config: Config) -> Compose:
    """Builds the test pipeline for images without masks; its first step checks the image."""
    pipeline = Compose(without_annotations(config.test_pipeline))
    loader = next((t for t in pipeline.transforms if isinstance(t, LoadImageFromFile)), None)
    pipeline.transforms.insert(0, functools.partial(check_image, loader=loader))
    return pipeline


def rank_images(
    model: Any, listed: Mapping[str, dict[str, Any]], out: str | Path, *, seed: int = 0
) -> Ranking:
    """Scores images, `listed` by name with their data infos, and keeps each score in `out`.

    Each score is kept as soon as it is known: a second run scores only missing images. Connected
    processes share the images. `model` is one of `load_training_model`.
    """
    pipeline = image_pipeline(model.cfg)
    done = _scores_of(listed, out)
    gather(None)  # all processes have read the old scores before one writes
    share = SharedImages([name for name in listed if name not in done], len(done))
    with only_warnings(), share.bar:  # no line amid the bar
        for name in share.own:
            stamp = file_stamp(name)
            try:
                data = pipeline(dict(listed[name]))
            except Exception as error:  # decoders raise nearly anything on a corrupt file
                share.failed(explain_unreadable(name, 'image', error))
                continue
            maps, z = disagreement(model, data, seed)
            means, slices = maps.mean((1, 2)), model.auxiliary_head.slices
            image = ScoredImage(
                score=float(maps.mean()),
                name=name,
                by_perturbation={key: float(means[k].mean()) for key, k in slices.items()},
                z=[round(value, 5) for value in z.tolist()],  # ample for distances
                stamp=stamp,
            )
            append_line(Path(out, SCORES, f'{get_rank()}.jsonl'), asdict(image))
            share.written()
    failed = share.total().failed
    return Ranking(sorted(_scores_of(listed, out).values(), reverse=True), failed)


def _scores_of(listed: Mapping[str, Any], out: str | Path) -> dict[str, ScoredImage]:
    """Returns the scores of the listed images, unless they were replaced, by name."""
    files = sorted(Path(out, SCORES).glob('*.jsonl'))
    scored = [image for file in files for image in read_lines(file, ScoredImage)]
    stamps = {image.name: file_stamp(image.name) for image in scored if image.name in listed}
    return {image.name: image for image in scored if image.stamp == stamps.get(image.name, ())}


@torch.no_grad()
def disagreement(model: Any, data: dict[str, Any], seed: int = 0) -> Disagreement:
    """Compares the auxiliary predictions for an image with the main one.

    `data` is an output of the test pipeline, with `inputs (3, H, W)`, and `seed` is that of the
    perturbations; torch's own generators stay as they are.
    """
    height, width = data['inputs'].shape[-2:]
    batch = model.data_preprocessor(pseudo_collate([data]), training=False)
    for sample in batch['data_samples']:  # some perturbations need the classes
        sample.set_metainfo(dict(classes=tuple(model.dataset_meta['classes'])))
    features = model.extract_feat(batch['inputs'])
    outputs, seg_logits = model.features_of_bank(features), model.predict_unlabeled(features)
    if not seg_logits.isfinite().all():
        raise UserError(data['data_samples'].metainfo.get('img_path'), 'the logits are not finite')
    bank = model.auxiliary_head
    # equal draws for all images, or the luck of a draw would rank them
    with torch.random.fork_rng([seg_logits.device] if seg_logits.is_cuda else []):
        torch.manual_seed(seed)
        flips = bank.disagreement(outputs, seg_logits, batch['data_samples'])
    mean = outputs[bank.in_index].mean((2, 3))[0].float().cpu()
    # The preprocessor pads right and below.
    maps = flips[:, 0, :height, :width].cpu()
    return Disagreement(maps, mean / mean.norm().clamp_min(1e-12))


def load_training_model(run: Run, device: str | None = None) -> Any:
    """Builds the model of a training in evaluation mode with its auxiliary decoders.

    Raises:
        UserError: If checkpoint or config has no auxiliary decoders, or they do not fit each other.
    """
    if find_bank(run.config) is None:
        raise UserError(run.name, 'has no auxiliary decoders', 'a run of cct or cct-strong')
    model = run.load_model(device)
    # `load_model` is lenient about the decoders.
    saved, prefix = weights(run.content), 'auxiliary_head.'
    decoders = {n.removeprefix(prefix): saved[n] for n in saved if n.startswith(prefix)}
    problem, expected = 'has other auxiliary decoders', "those of the training's config"
    with library_errors_as_one_line(run.checkpoint, problem, expected):
        model.auxiliary_head.load_state_dict(decoders)
    return model
