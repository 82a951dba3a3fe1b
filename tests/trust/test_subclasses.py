"""A subclass of a component, registered and named in a config, trains as the component does."""

import pytest
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
from mmseg_cct.studies.study_config import study_config

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
PERTURBATIONS = [
    (MODELS, kind, f'{BANK}.perturbations.{kind.__name__}')
    for kind in (IntermediateVAT, ObjectMasking, FeatureDrop)
]
OF_CCT_PLUS = [
    (MODELS, CCTPlusSegmentor, 'model'),
    (MODELS, PerturbedDecoderBank, BANK),
    (MODELS, ConfidentMSE, 'model.loss_strong'),
    (DATASETS, SemiSegDataset, PAIRS),
    (TRANSFORMS, StrongViews, f'{PAIRS}.strong_views'),
    (HOOKS, TeacherHook, 'default_hooks.teacher'),
]


def named(components):
    return [pytest.param(*each, id=f'{each[1].__name__} at {each[2]}') for each in components]


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


def by_name(run):
    """Names the context's classes, which training looks up in the labelled set."""
    run.config.model.auxiliary_head.context_classes = ('ground',)
    run.write()
    return run


def registered(registry, component):
    mine = type(f'My{component.__name__}', (component,), {})
    registry.register_module(module=mine, force=True)
    return mine.__name__


def subclassed(run, registry, component, key):
    """Writes the config with an empty subclass in the component's place."""
    at(run.config, key)['type'] = registered(registry, component)
    run.write()


@pytest.fixture(scope='module')
def runs(slow, tmp_path_factory):
    """What the components themselves log, without and with a method."""
    import world

    run = by_name(world.Run(tmp_path_factory.mktemp('run')))
    return {method: logged(run, str(method), method) for method in (None, 'cct-plus')}


@pytest.mark.parametrize(('registry', 'component', 'key'), named(COMPONENTS))
def test_a_subclass_trains_the_same(cct, runs, registry, component, key):
    subclassed(by_name(cct), registry, component, key)
    assert logged(cct, 'work') == runs[None]


@pytest.mark.parametrize(('registry', 'component', 'key'), named(PERTURBATIONS))
def test_a_subclass_of_a_perturbation_has_its_decoders(cct, runs, registry, component, key):
    """Their place in the bank is the last, that of new types, so the draws are others."""
    subclassed(by_name(cct), registry, component, key)
    first, expected = logged(cct, 'work')[0], runs[None][0]
    assert first.keys() == expected.keys()
    assert first['decode.loss_ce'] == expected['decode.loss_ce']
    assert 0 < first['aux.loss'] < 10 * expected['aux.loss']


@pytest.mark.parametrize(('registry', 'component', 'key'), named(COMPONENTS[4:]))
def test_a_method_fits_on_it(cct, runs, registry, component, key):
    subclassed(by_name(cct), registry, component, key)
    assert logged(cct, 'work', 'cct-plus') == runs['cct-plus']


@pytest.mark.parametrize(('registry', 'component', 'key'), named(OF_CCT_PLUS))
def test_a_subclass_of_a_method_s_part_trains_the_same(cct, runs, registry, component, key):
    by_name(cct).train('plus', {'method': 'cct-plus', 'train_cfg.max_iters': 1})
    (dumped,) = (cct.folder / 'plus').glob('*.py')
    cct.config = Config.fromfile(dumped)
    cct.config.work_dir = None
    subclassed(cct, registry, component, key)
    assert logged(cct, 'work') == runs['cct-plus']


def test_a_prediction_leaves_out_a_subclass_that_loads_masks():
    load, pack = dict(type='LoadImageFromFile'), dict(type='PackSegInputs')
    masks = dict(type=registered(TRANSFORMS, LoadAnnotations))
    assert without_annotations([load, masks, pack]) == [load, pack]


def test_a_study_refuses_a_subclass_that_stops_early(cct):
    name = registered(HOOKS, EarlyStoppingHook)
    cct.config.custom_hooks.append(dict(type=name, monitor='mIoU'))
    cct.write()
    with pytest.raises(UserError, match=f'{name} ends runs at different lengths; expected none'):
        study_config(str(cct.file), {})
