"""Loads a trained model for inference."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmcv.transforms import LoadAnnotations, TestTimeAug
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import init_default_scope
from mmengine.runner.checkpoint import load_state_dict
from mmseg.apis import init_model
from mmseg.registry import DATASETS, TRANSFORMS

from mmseg_cct.config.domains import pipeline_for_tests, require_domain
from mmseg_cct.config.walk import at, forget_initial_weights, leaf_sets
from mmseg_cct.datasets.files.palette import class_colours
from mmseg_cct.engine.checkpoints import weights
from mmseg_cct.engine.weights import require_matching_weights
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.components import class_of, is_a
from mmseg_cct.preflight.failures import config_errors_as_one_line
from mmseg_cct.utils.log import warn

from .device import default_device


def load_model(
    config: Config,
    content: Mapping[str, Any],
    checkpoint: str,
    device: str | None = None,
    domain: str | None = None,
) -> Any:
    """Builds a segmentor for `mmseg.apis.inference_model`, in evaluation mode.

    It has `dataset_meta` (classes and palette) and `cfg`.

    Args:
        config: The config of the model.
        content: The weights and `meta`; the weights may lack the auxiliary decoders.
        checkpoint: Where they are from, for messages.
        device: Where to compute; by default the GPU of this process, if any.
        domain: Which domain to predict with, if the model has several.

    Returns:
        The model.

    Raises:
        UserError: If the config does not build, or a weight is missing or has another shape.
    """
    if config.get('model') is None:
        raise UserError('model', 'missing', 'the config of a model')
    require_domain(config, domain)
    if domain is not None:
        pipeline = pipeline_for_tests(config, domain)
        config.test_pipeline = [*pipeline, dict(type='SetDomain', domain=domain)]
    elif not config.get('test_pipeline'):
        config.test_pipeline = pipeline_for_tests(config)
    _warn_of_other_tests(config)
    forget_initial_weights(config.model)  # the checkpoint has them: fetch none
    with config_errors_as_one_line(config):
        model = init_model(config, device=device or default_device())
        for step in config.test_pipeline:
            TRANSFORMS.build(dict(step))
    require_matching_weights(model, content, checkpoint, training=False)
    load_state_dict(model, weights(content))

    num_classes = (model if domain is None else model.domains[domain]).num_classes
    if num_classes > 256:
        raise UserError(checkpoint, f'{num_classes} classes; a palette PNG holds at most 256')
    meta = (content.get('meta') or {}).get('dataset_meta') or {}
    if domain is not None:
        meta = meta.get('domains', {}).get(domain, {})
    meta = {**_config_meta(config, domain), **meta}
    # defaults for names and colours that are missing or do not match the number of classes
    if len(meta.get('classes') or ()) != num_classes:
        meta['classes'] = tuple(f'class {index}' for index in range(num_classes))
    if len(meta.get('palette') or ()) != num_classes:
        meta['palette'] = [list(colour) for colour in class_colours(meta['classes'])]
    model.dataset_meta = meta
    return model


def _warn_of_other_tests(config: Config) -> None:
    tested = at(config, 'test_dataloader.dataset.pipeline')
    # how an image is loaded, labelled and packed does not matter: drawn scenes have no files
    seen, tests = (
        without_annotations(steps or [])[1:-1] for steps in (config.test_pipeline, tested)
    )
    if tested and seen != tests:
        warn(
            'test_pipeline: unlike test_dataloader.dataset.pipeline after the loading, so images '
            'are predicted in another way than they are tested'
        )


def without_annotations(steps: Sequence[Any]) -> list[Any]:
    """Leaves `LoadAnnotations` out of a pipeline, and out of the views of its `TestTimeAug`."""
    kept = []
    for step in steps:
        if is_a(step, TRANSFORMS, TestTimeAug):
            branches = map(without_annotations, step['transforms'])
            step = dict(step, transforms=[branch for branch in branches if branch])
        if not is_a(step, TRANSFORMS, LoadAnnotations):
            kept.append(step)
    return kept


def _config_meta(config: Config, domain: str | None) -> dict[str, Any]:
    """Returns classes and palette of the first data set in a config that names classes."""
    init_default_scope(config.get('default_scope') or 'mmseg')
    for dataset in _datasets(config, domain):
        kind = class_of(dataset, DATASETS)
        if isinstance(kind, type) and issubclass(kind, BaseDataset):
            meta = {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}
            if classes := dataset.get('classes'):  # FolderDataset
                meta.update(classes=tuple(classes), palette=dataset.get('palette'))
            if meta.get('classes'):
                return meta
    return {}


def _datasets(config: Config, domain: str | None) -> Iterator[Any]:
    """Yields the settings of all sets; of a set with several domains, those of `domain`."""
    for split in ('test', 'val', 'train'):
        dataset = (config.get(f'{split}_dataloader') or {}).get('dataset')
        for _, leaf in leaf_sets(dataset):
            own = (leaf.get('domains') or {}).get(domain, leaf)
            yield from (each for _, each in leaf_sets(own))
