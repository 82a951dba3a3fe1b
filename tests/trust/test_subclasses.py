"""A subclass of a component, registered and named in a config, trains as the component does."""

import copy

import pytest
import world
from mmengine.config import Config
from mmengine.hooks import EarlyStoppingHook
from mmengine.registry import HOOKS
from mmseg.datasets.transforms import LoadAnnotations
from mmseg.registry import DATA_SAMPLERS, DATASETS, MODELS, TRANSFORMS

from mmseg_cct.apis.inference import without_annotations
from mmseg_cct.config.walk import at
from mmseg_cct.datasets import FolderDataset, PairSampler, SemiSegDataset, StrongViews
from mmseg_cct.engine.hooks import RampUpHook, TeacherHook
from mmseg_cct.errors import UserError
from mmseg_cct.models import (
    BranchPreprocessor,
    CCTPlusSegmentor,
    CCTSegmentor,
    PerturbedDecoderBank,
    PixelShuffleHead,
    PSPNeck,
)
from mmseg_cct.models.losses import ConfidentMSE, MSEConsistency
from mmseg_cct.models.perturbations import FeatureDrop, IntermediateVAT, ObjectMasking
from mmseg_cct.studies.study import study_config

BANK = 'model.auxiliary_head'
PAIRS = 'train_dataloader.dataset'
COMPONENTS = [
    (MODELS, CCTSegmentor, 'model'),
    (MODELS, BranchPreprocessor, 'model.data_preprocessor'),
    (MODELS, PSPNeck, 'model.neck'),
    (MODELS, PixelShuffleHead, 'model.decode_head'),
    (MODELS, PerturbedDecoderBank, BANK),
    (MODELS, MSEConsistency, f'{BANK}.loss_consistency'),
    (DATASETS, SemiSegDataset, PAIRS),
    (DATASETS, FolderDataset, f'{PAIRS}.labeled'),
    (DATASETS, FolderDataset, f'{PAIRS}.unlabeled'),
    (DATASETS, FolderDataset, 'val_dataloader.dataset'),
    (DATA_SAMPLERS, PairSampler, 'train_dataloader.sampler'),
    (HOOKS, RampUpHook, 'custom_hooks.1'),
]
OF_CCT_PLUS = [
    (MODELS, CCTPlusSegmentor, 'model'),
    (MODELS, PerturbedDecoderBank, BANK),
    (MODELS, ConfidentMSE, 'model.loss_strong'),
    (DATASETS, SemiSegDataset, PAIRS),
    (TRANSFORMS, StrongViews, f'{PAIRS}.strong_views'),
    (HOOKS, TeacherHook, 'default_hooks.teacher'),
]


def logged(run, name, method=None):
    """Trains two iterations, with a validation after each; gives what they log but the times."""
    options = {'train_cfg.max_iters': 2, 'train_cfg.val_interval': 1}
    run.train(name, {**options, **({'method': method} if method else {})})
    lines = run.scalars(run.folder / name)
    assert list(lines) == [1, 2]
    return [
        {key: value for key, value in line.items() if 'time' not in key}
        for (line,) in lines.values()
    ]


def registered(registry, component):
    mine = type(f'My{component.__name__}', (component,), {})
    registry.register_module(module=mine, force=True)
    return mine.__name__


def subclassed(run, config, registry, component, key):
    """Gives the run a config with an empty subclass in the component's place."""
    run.config = copy.deepcopy(config)
    at(run.config, key)['type'] = registered(registry, component)
    run.write()


@pytest.fixture(scope='module')
def runs(slow, tmp_path_factory):
    """Config, method and what the components log: without a method, with one, and with its parts.

    The context's classes are named, so a training looks them up in the labelled set.
    """
    run = world.Run(tmp_path_factory.mktemp('run'))
    run.config.model.auxiliary_head.context_classes = ('ground',)
    run.write()
    plain, plus = (logged(run, str(method), method) for method in (None, 'cct-plus'))
    composed = Config.fromfile(next((run.folder / 'cct-plus').glob('*.py')))
    composed.work_dir = None
    return dict(
        plain=(run.config, None, plain),
        method=(run.config, 'cct-plus', plus),
        composed=(composed, None, plus),
    )


@pytest.mark.parametrize(
    ('way', 'registry', 'component', 'key'),
    [
        *(('plain', *each) for each in COMPONENTS),
        *(('method', *each) for each in COMPONENTS[4:]),
        *(('composed', *each) for each in OF_CCT_PLUS),
    ],
)
def test_a_subclass_trains_the_same(cct, runs, way, registry, component, key):
    config, method, expected = runs[way]
    subclassed(cct, config, registry, component, key)
    assert logged(cct, 'work', method) == expected


@pytest.mark.parametrize('kind', [IntermediateVAT, ObjectMasking, FeatureDrop])
def test_a_subclass_of_a_perturbation_has_its_decoders(cct, runs, kind):
    """Their place in the bank is the last, that of new types, so the draws are others."""
    config, _, (expected, _) = runs['plain']
    subclassed(cct, config, MODELS, kind, f'{BANK}.perturbations.{kind.__name__}')
    first, _ = logged(cct, 'work')
    assert first.keys() == expected.keys()
    assert first['decode.loss_ce'] == expected['decode.loss_ce']
    assert 0 < first['aux.loss'] < 10 * expected['aux.loss']


def test_a_prediction_and_a_study_know_a_subclass(cct):
    load, pack = dict(type='LoadImageFromFile'), dict(type='PackSegInputs')
    masks = dict(type=registered(TRANSFORMS, LoadAnnotations))
    assert without_annotations([load, masks, pack]) == [load, pack]
    name = registered(HOOKS, EarlyStoppingHook)
    cct.config.custom_hooks.append(dict(type=name, monitor='mIoU'))
    cct.write()
    with pytest.raises(UserError, match=f'{name} ends runs at different lengths; expected none'):
        study_config(str(cct.file), {})
