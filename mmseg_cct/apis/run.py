"""A run is a folder: its config, its checkpoints, its log and the labels that it began with."""

import copy
import hashlib
import json
import math
import re
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

from mmseg_cct.config.domains import config_of_domain, pipeline_for_tests, require_domain
from mmseg_cct.config.walk import forget_initial_weights
from mmseg_cct.datasets.files.palette import class_colors
from mmseg_cct.engine.checkpoints import checkpoint_bytes, find_trained, read_checkpoint
from mmseg_cct.engine.labels_record import Labels, read_labels
from mmseg_cct.engine.weights import require_matching_weights, weights
from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.classes import order_problems
from mmseg_cct.preflight.files import build_evaluation_set
from mmseg_cct.preflight.settings import config_errors_as_one_line
from mmseg_cct.utils.log import warn
from mmseg_cct.utils.processes import usable_cores

from .device import default_device
from .predictor import Predictor

__all__ = ['Run']


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network: the config of a training and one of its checkpoints.

    A run is a value: nobody writes into its config, and who needs another one makes a copy. The
    config is a file, Python that the tools run. A checkpoint is data and never code: no text in it
    is read as a config.

    Attributes:
        config: The config, for reading alone.
        checkpoint: Path or address of the weights.
        name: What messages and reports call the run.
        domain: The domain that the config and `content` are of, if the training had several.
    """

    config: Config
    checkpoint: str
    name: str
    domain: str | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        checkpoint: str | Path | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> 'Run':
        """Opens the work directory of a training or, as MMSeg's tools do, a config and checkpoint.

        Args:
            path: A work directory, a checkpoint in one, or a config.
            checkpoint: The weights; needed with a config, else the last in the work directory.
            options: Settings of the config to override, as in `load_config`.
            name: By default that of the work directory.

        Returns:
            The run.

        Raises:
            UserError: The folder has no checkpoint, or not exactly one config; or the config is
                missing or does not load.
        """
        config, weights_path = find_trained(path, checkpoint, options)
        return cls(config, weights_path, name or Path(weights_path).absolute().parent.name)

    def of_domain(self, domain: str | None) -> 'Run':
        """Returns the run of one domain, a network like any other, or this run if it has none.

        Args:
            domain: One of several domains; None for a run of one data set.

        Returns:
            The run, whose config, weights and log are those of the domain.

        Raises:
            UserError: The run has no such domain, or several and none is named.
        """
        require_domain(self.config, domain)
        if domain is None:
            return self
        return Run(config_of_domain(self.config, domain), self.checkpoint, self.name, domain)

    @property
    def folder(self) -> Path:
        """The work directory."""
        return Path(self.checkpoint).parent

    @property
    def domain_option(self) -> tuple[str, ...]:
        """What names the domain on a command line."""
        return () if self.domain is None else ('--domain', self.domain)

    @cached_property
    def content(self) -> dict[str, Any]:
        """The checkpoint's `meta` and `state_dict`, without the state of the training."""
        require_domain(self.config, None)
        # The optimizer's state is as large as the weights, and nothing here needs it.
        content = read_checkpoint(self.checkpoint)
        content = {key: content[key] for key in ('meta', 'state_dict') if key in content}
        return content if self.domain is None else _content_of_domain(content, self.domain)

    def load_model(self, device: str | None = None) -> Any:
        """Builds the network for `mmseg.apis.inference_model`, in evaluation mode.

        It has `dataset_meta` (classes and palette) and `cfg`.

        Args:
            device: By default the GPU of this process, if any.

        Returns:
            The model.

        Raises:
            UserError: If the config does not build, or a weight is missing or has another shape.
        """
        config, content = copy.deepcopy(self.config), self.content
        config.test_pipeline = pipeline_for_tests(config)
        forget_initial_weights(config.model)  # the checkpoint has them: fetch none
        with config_errors_as_one_line(config):
            model = init_model(config, device=device or default_device())
        require_matching_weights(model, content, self.checkpoint, training=False)
        load_state_dict(model, weights(content))

        if model.num_classes > 256:
            raise UserError(self.checkpoint, f'{model.num_classes} classes', '256, as PNGs hold')
        meta = dict((content.get('meta') or {}).get('dataset_meta') or {})
        # defaults for names and colours that are missing or do not match the number of classes
        if len(meta.get('classes') or ()) != model.num_classes:
            meta['classes'] = tuple(f'class {index}' for index in range(model.num_classes))
        if len(meta.get('palette') or ()) != model.num_classes:
            meta['palette'] = [list(color) for color in class_colors(meta['classes'])]
        model.dataset_meta = meta
        return model

    @cached_property
    def predictor(self) -> Predictor:
        """What segments images with the network."""
        return Predictor(self.load_model())

    @cached_property
    def digest(self) -> dict[str, str]:
        """What outputs depend on: hashes of the `settings` and the `weights`, and the domain."""
        used = {key: self.config.get(key) for key in ('model', 'test_pipeline', 'test_dataloader')}
        parts = Config(used).pretty_text.encode(), checkpoint_bytes(self.content['state_dict'])
        hashes = (hashlib.sha256(part).hexdigest()[:16] for part in parts)
        domain = {} if self.domain is None else {'domain': self.domain}
        return {**dict(zip(('settings', 'weights'), hashes)), **domain}

    @cached_property
    def test_loader(self) -> DataLoader:
        """The test set in order, each image once; its files are checked."""
        loader = self.config.get('test_dataloader')
        if loader is None or loader.get('dataset') is None:
            raise UserError(self.name, 'no test_dataloader in its config', 'a test set')
        saved_meta = (self.content.get('meta') or {}).get('dataset_meta')
        dataset = build_evaluation_set(loader.dataset, f'{self.name}: test_dataloader.dataset')
        raise_problems(order_problems(dataset.metainfo, saved_meta, self.checkpoint))
        sampler = dict(type='DefaultSampler', shuffle=False)  # an image's result has its index
        settings = dict(dataset=dataset, batch_size=loader.get('batch_size') or 1, sampler=sampler)
        settings['num_workers'] = min(loader.get('num_workers') or 0, usable_cores())
        return Runner.build_dataloader(settings)

    @cached_property
    def scalars(self) -> list[dict]:
        """What the training logged up to the checkpoint: a dict with its `step` for each time."""
        last = (self.content.get('meta') or {}).get('iter', math.inf)
        return [v for v in read_scalars(self.folder, self.domain) if v['step'] <= last]

    @cached_property
    def labels(self) -> Labels | None:
        """The images that the training began with, if they are recorded."""
        return read_labels(self.folder)


def read_scalars(work_dir: Path, domain: str | None = None) -> list[dict]:
    """Reads the values of each logged iteration across resumes, sorted by `step`.

    A line that a kill has cut off is left out, with a warning: the resumed training logs that
    iteration again. Values of a `domain` get the names that a training of one data set logs.
    """
    prefix = re.compile(rf'^{re.escape(domain)}[./]' if domain else '')
    by_step: dict[tuple[int, bool], dict] = {}
    # one folder per start, named by time
    for file in sorted(work_dir.glob('*/vis_data/scalars.json')):
        for number, line in enumerate(file.read_text(errors='replace').splitlines(), 1):
            try:
                logged = json.loads(line)
                values = {prefix.sub('', key, count=1): logged[key] for key in logged}
                # A resumed run logs repeated iterations again; the last one counts.
                by_step[int(values['step']), 'mIoU' in values] = values
            except (ValueError, TypeError, KeyError):
                warn(f'{file}, line {number}: damaged; left out')
    return [by_step[key] for key in sorted(by_step)]


def _content_of_domain(content: Mapping[str, Any], domain: str) -> dict[str, Any]:
    """Leaves in a checkpoint what its network needs for one of several domains."""
    prefix = f'domains.{domain}.'
    saved, others = weights(content), ('domains.', 'discriminator.')
    names = [name for name in saved if name.startswith(prefix) or not name.startswith(others)]
    state = {name.removeprefix(prefix): saved[name] for name in names}
    meta = dict(content.get('meta') or {})
    meta['dataset_meta'] = (meta.get('dataset_meta') or {}).get('domains', {}).get(domain, {})
    return dict(meta=meta, state_dict=state)
