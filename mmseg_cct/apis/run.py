"""A run is a folder: its config, its checkpoints, its log and the labels that it began with."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.runner.checkpoint import load_state_dict
from mmseg.apis import init_model
from torch.utils.data import DataLoader

from mmseg_cct.config.domains import pipeline_for_tests, require_domain, require_one_domain
from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.datasets.files.palette import class_colours
from mmseg_cct.engine.checkpoints import checkpoint_bytes, find_trained, read_checkpoint
from mmseg_cct.engine.weights import require_matching_weights, weights
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.classes import order_problems
from mmseg_cct.preflight.failures import config_errors_as_one_line
from mmseg_cct.preflight.files import build_evaluation_set
from mmseg_cct.preflight.labeled_record import Labels, read_labels
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import usable_cores

from .device import default_device
from .predictor import Predictor


@dataclass
class Run:
    """A trained network: the config of a training and one of its checkpoints.

    The config is a file, Python that the tools run. A checkpoint is data and never code: no text
    in it is read as a config.

    Attributes:
        config: The config.
        checkpoint: Path or address of the weights.
        name: What messages and reports call the run.
    """

    config: Config
    checkpoint: str
    name: str

    @classmethod
    def open(
        cls,
        place: str | Path,
        checkpoint: str | Path | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> 'Run':
        """Opens the work directory of a training or, as MMSeg's tools do, a config and checkpoint.

        Args:
            place: As in `find_trained`.
            checkpoint: As there.
            options: As there.
            name: By default that of the work directory.

        Returns:
            The run.

        Raises:
            UserError: As there.
        """
        config, found = find_trained(place, checkpoint, options)
        return cls(config, found, name or Path(found).absolute().parent.name)

    @property
    def folder(self) -> Path:
        """The work directory."""
        return Path(self.checkpoint).parent

    @cached_property
    def content(self) -> dict[str, Any]:
        """The checkpoint's `meta` and `state_dict`, without the state of the training."""
        # The optimizer's state is as large as the weights, and nothing here needs it.
        content = read_checkpoint(self.checkpoint)
        return {key: content[key] for key in ('meta', 'state_dict') if key in content}

    def load_model(self, device: str | None = None, domain: str | None = None) -> Any:
        """Builds the network for `mmseg.apis.inference_model`, in evaluation mode.

        It has `dataset_meta` (classes and palette) and `cfg`.

        Args:
            device: By default the GPU of this process, if any.
            domain: Which domain to predict with, if the model has several.

        Returns:
            The model.

        Raises:
            UserError: If the config does not build, or a weight is missing or has another shape.
        """
        config, content = self.config, self.content
        require_domain(config, domain)
        if domain is not None:
            pipeline = pipeline_for_tests(config, domain)
            config.test_pipeline = [*pipeline, dict(type='SetDomain', domain=domain)]
        elif not config.get('test_pipeline'):
            config.test_pipeline = pipeline_for_tests(config)
        forget_initial_weights(config.model)  # the checkpoint has them: fetch none
        with config_errors_as_one_line(config):
            model = init_model(config, device=device or default_device())
        require_matching_weights(model, content, self.checkpoint, training=False)
        load_state_dict(model, weights(content))

        num_classes = (model if domain is None else model.domains[domain]).num_classes
        if num_classes > 256:
            found = f'{num_classes} classes; a palette PNG holds at most 256'
            raise UserError(self.checkpoint, found)
        meta = (content.get('meta') or {}).get('dataset_meta') or {}
        meta = dict(meta if domain is None else meta.get('domains', {}).get(domain, {}))
        # defaults for names and colours that are missing or do not match the number of classes
        if len(meta.get('classes') or ()) != num_classes:
            meta['classes'] = tuple(f'class {index}' for index in range(num_classes))
        if len(meta.get('palette') or ()) != num_classes:
            meta['palette'] = [list(colour) for colour in class_colours(meta['classes'])]
        model.dataset_meta = meta
        return model

    @cached_property
    def predictor(self) -> Predictor:
        """What segments images with the network."""
        return Predictor(self.load_model())

    def origin(self, **others: Any) -> dict[str, Any]:
        """Describes for an `OutputFolder` everything that changes outputs, `others` included."""
        used = {key: self.config.get(key) for key in ('model', 'test_pipeline', 'test_dataloader')}
        parts = Config(used).pretty_text.encode(), checkpoint_bytes(self.content['state_dict'])
        settings, weights = (hashlib.sha256(part).hexdigest()[:16] for part in parts)
        return {'settings': settings, 'weights': weights, **others}

    @cached_property
    def test_loader(self) -> DataLoader:
        """The test set in order, each image once; its files are checked."""
        require_one_domain(self.config, self.name)
        loader = self.config.get('test_dataloader')
        if loader is None or loader.get('dataset') is None:
            raise UserError(self.name, 'no test_dataloader in its config', 'a test set')
        dataset = build_evaluation_set(loader.dataset, f'{self.name}: test_dataloader.dataset')
        saved = (self.content.get('meta') or {}).get('dataset_meta')
        raise_problems(order_problems(dataset.metainfo, saved, self.checkpoint))
        own = dict(
            batch_size=loader.get('batch_size') or 1,
            num_workers=min(loader.get('num_workers') or 0, usable_cores()),
            sampler=dict(type='DefaultSampler', shuffle=False),  # a result's place is its image's
        )
        return Runner.build_dataloader(dict(own, dataset=dataset))

    @cached_property
    def scalars(self) -> list[dict]:
        """What the training logged: a dict with its `step` for each logged iteration."""
        return read_scalars(self.folder)

    @cached_property
    def labels(self) -> Labels | None:
        """The images that the training began with, if they are recorded."""
        return read_labels(self.folder)


def read_scalars(work_dir: Path) -> list[dict]:
    """Reads the values of each logged iteration across resumes, sorted by `step`.

    A line that a kill has cut off is left out, with a warning: the resumed training logs that
    iteration again.
    """
    by_step: dict[tuple[int, bool], dict] = {}
    # one folder per start, named by time
    for file in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for number, line in enumerate(file.read_text(errors='replace').splitlines(), 1):
            try:
                values = json.loads(line)
                # A resumed run logs repeated iterations again; the last one counts.
                by_step[int(values['step']), 'mIoU' in values] = values
            except (ValueError, TypeError, KeyError):
                warn(f'{file}, line {number}: damaged; left out')
    return [by_step[key] for key in sorted(by_step)]
