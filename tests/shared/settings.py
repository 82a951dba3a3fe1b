"""The shipped configs: which there are, what sets a model apart, which methods fit."""

import tempfile
from functools import cache
from pathlib import Path

from mmseg_cct.config.compose import fits_domains, read_method
from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import PLAIN, method_names
from mmseg_cct.writer.choices import BACKBONES

CONFIGS = Path(__file__).parents[2] / 'configs'
# classifiers: pseudo_labels/test_weak_configs.py
ALL = sorted(
    path.relative_to(CONFIGS).with_suffix('').as_posix()
    for path in CONFIGS.glob('*/cct_*.py')
    if path.parent.name != 'methods'
)
DOMAINS = 'multi_domain/cct_mbv2-jpu_camvid-idd_20'
SINGLE = 'cct/cct_mbv2-jpu_idd-lite_20'
# Models of `_base_` on CamVid, by the recipe of docs/models.md.
MODELS = [f'models/{name}' for name in BACKBONES]
_FOLDER = tempfile.TemporaryDirectory()


@cache
def parse(name, method=PLAIN):
    file = CONFIGS / f'{name}.py'
    if name in MODELS:
        file = recipe(name.partition('/')[2])
    return load_config(str(file), {'method': method})


def recipe(name):
    own = BACKBONES[name]
    parts = f'models/{own.model}', 'datasets/camvid', 'schedules/cct_teacher'
    bases = [f'{CONFIGS}/_base_/{part}.py' for part in (*parts, f'schedules/{own.schedule}')]
    file = Path(_FOLDER.name, f'cct_{name}_camvid_50.py')
    file.write_text(f"""_base_ = {bases}
_heads = _base_.model.auxiliary_head
_fcn, _bank = _heads if isinstance(_heads, list) else (None, _heads)
_bank = dict(_bank, num_classes=11, context_classes=_base_.context_classes)
model = dict(
    data_preprocessor=dict(size=(368, 480)),  # multiples of 16
    decode_head=dict(num_classes=11),
    auxiliary_head=[dict(_fcn, num_classes=11), _bank] if _fcn else _bank,
)
train_dataloader = dict(dataset=dict(num_labeled=50))
train_cfg = dict(max_iters=100, val_interval=50)
param_scheduler = dict(end=100)
""")
    return file


# What a step of small images does not tell apart: two models that differ in it alone are one.
NOT_STEPPED = {
    'data_preprocessor', 'num_classes', 'context_classes', 'init_cfg', 'pretrained', 'domains',
}  # fmt: skip


def parts(setting, key='', numbers=(float,)):
    """The parts of a model that a step shows, as text: all but weights, or but all numbers."""
    if isinstance(setting, dict):
        kept = {k: v for k, v in setting.items() if k not in NOT_STEPPED}
        if not key or 'loss_consistency' in setting:  # the model and its bank, part by part
            return {part for k, v in kept.items() for part in parts(v, f'{key}.{k}', numbers)}
        return {f'{key}={sorted((k, sorted(parts(v, k, numbers))) for k, v in kept.items())}'}
    if isinstance(setting, (list, tuple)):
        return {part for each in setting for part in parts(each, key, numbers)}
    return set() if type(setting) in numbers else {f'{key}={setting}'}


def distinct_models():
    """Settings that together have each part of a model there is, small networks first.

    Of the models of `_base_` one size is enough: tests/writer builds each.
    """
    seen, chosen = set(), []
    for name in sorted([*ALL, *MODELS], key=lambda name: ('mbv2' not in name, 'r50' in name, name)):
        model = parse(name).model.to_dict()
        whole, kinds = parts(model), parts(model, numbers=(float, int))
        if (kinds if name in MODELS else whole) - seen:
            chosen.append(name)
            seen |= whole | kinds
    return chosen


DISTINCT = distinct_models()


def distinct_methods(name):
    """Methods that together have each part that a method gives a model."""
    seen, chosen = parts(parse(name).model.to_dict()), []
    for method in method_names()[1:]:
        own = parts(parse(name, method).model.to_dict()) if fits(method, name) else set()
        if own - seen:
            chosen.append(method)
            seen |= own
    return chosen


def fits(method, name):
    """Whether a method is one of several domains, or of one, as the setting is."""
    return fits_domains(read_method(method).get('model', {}), name == DOMAINS)
