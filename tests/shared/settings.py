"""The shipped configs: which there are, what sets a model apart, which methods fit."""

import json
from functools import cache
from pathlib import Path

from mmseg_cct.config.load import load_config
from mmseg_cct.config.shipped import PLAIN

CONFIGS = Path(__file__).parents[2] / 'configs'
# classifiers: pseudo_labels/test_weak_configs.py
ALL = sorted(
    path.relative_to(CONFIGS).with_suffix('').as_posix()
    for path in CONFIGS.glob('*/cct_*.py')
    if path.parent.name != 'methods'
)
DOMAINS = 'multi_domain/cct_mbv2-jpu_camvid-idd_20'
SINGLE = 'cct/cct_mbv2-jpu_idd-lite_20'


@cache
def parse(name, method=PLAIN):
    return load_config(f'{CONFIGS / name}.py', {'method': method})


# What a step of small images does not tell apart: two models that differ in it alone are one.
NOT_STEPPED = {'data_preprocessor', 'num_classes', 'context_classes', 'init_cfg', 'pretrained'}


def architecture(setting):
    if isinstance(setting, dict):
        return {k: architecture(v) for k, v in setting.items() if k not in NOT_STEPPED}
    if isinstance(setting, (list, tuple)):
        return [architecture(each) for each in setting]
    return setting


def distinct_models():
    """The first setting of each model there is: settings that differ by their data share one."""
    first = {}
    for name in ALL:
        model = architecture(parse(name).model.to_dict())
        first.setdefault(json.dumps(model, sort_keys=True), name)
    return list(first.values())


DISTINCT = distinct_models()


def fits(method, name):
    """Whether a method is one of several domains, or of one, as the setting is."""
    of_several = method == 'cct-adv'
    of_one = method in ('mean-teacher', 'input-vat') or any(
        recipe in method for recipe in ('match', 'plus', 'strong')
    )
    return not (of_one if name == DOMAINS else of_several)
