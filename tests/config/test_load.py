import inspect
import re

import pytest
from mmengine.config import Config
from mmengine.runner import FlexibleRunner, Runner

from mmseg_cct.config.load import (
    READ_KEYS,
    chosen_method,
    load_config,
    move_scheduler_ends,
    protections,
    with_protections,
)
from mmseg_cct.errors import UserError


def test_a_config_that_names_no_protection_gets_the_shipped_ones():
    plain = Config(dict(default_hooks=dict(nonfinite_loss=dict(type='Own'))))
    protected = with_protections(plain, {})
    assert list(plain.default_hooks) == ['nonfinite_loss']
    assert set(protected.default_hooks) == protections().keys() > {'nonfinite_loss', 'preflight'}
    assert protected.default_hooks.nonfinite_loss.type == 'Own'
    named = Config(dict(default_hooks=dict(preflight=dict(type='PreflightHook'))))
    assert list(with_protections(named, {}).default_hooks) == ['preflight']
    without = Config(dict(default_hooks=None))
    assert not with_protections(without, {'default_hooks.preflight': None}).default_hooks


@pytest.mark.parametrize(
    ('options', 'method'),
    [({}, 'cct-strong'), ({'method': 'unimatch'}, 'unimatch'), ({'labels': 5}, 'cct-strong')],
)
def test_a_method_is_known_by_option_or_name(tmp_path, options, method):
    file = tmp_path / 'cct-strong_net_mine.py'
    file.write_text("model = dict(type='A')")
    assert chosen_method(str(file), options) == method
    assert chosen_method(str(file.rename(tmp_path / 'mine.py')), {}) == 'cct'


def test_a_new_key_is_named_and_a_replaced_dict_is_none(cct, messages):
    options = {'optim_wrapper.optimizer._delete_': True, 'optim_wrapper.optimizer.type': 'Adam'}
    options |= {'train_cfg.val_interval': 2, 'param_scheduler.0.end': 1}
    config = load_config(str(cct.file), options)
    assert config.optim_wrapper.optimizer == dict(type='Adam')
    assert config.param_scheduler[0].end == 1
    assert messages == []
    load_config(str(cct.file), {'train_cfg.max_iter': 3})
    assert [line.split(': ')[0] for line in messages] == ['--cfg-options train_cfg.max_iter']


@pytest.mark.parametrize(
    ('text', 'match'),
    [
        ("_base_ = 'missing.py'", r'missing\.py'),
        ('raise SystemExit', 'SystemExit'),
        (
            "custom_imports = dict(imports=['no_such_package'], allow_failed_imports=False)",
            r"No module named 'no_such_package'; expected .*PYTHONPATH=\.",
        ),
        ("raise ModuleNotFoundError(name='mmcv._ext')", r'docs/install\.md'),
    ],
)
def test_a_config_that_does_not_load_is_one_line(tmp_path, text, match):
    path = tmp_path / 'bad.py'
    path.write_text(text)
    with pytest.raises(UserError, match=match) as error:
        load_config(str(path), {})
    assert str(error.value).startswith(f'{path}: this config does not load: ')
    assert '\n' not in str(error.value)


CONFIG = """
max_iters, size, folder = 8, (64, 64), dict(image_dir='a')
model = dict(data_preprocessor=dict(size=size[::-1]))
train_dataloader = dict(dataset=dict(labeled=dict(**folder)))
train_cfg = dict(max_iters=max_iters)
test_pipeline = [dict(type='Resize', scale=size)]
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / 'own.py'
    path.write_text(CONFIG)
    return str(path)


@pytest.mark.parametrize('option', ['max_iters', 'folder.image_dir'])
def test_an_option_for_a_variable_is_refused(own, option):
    with pytest.raises(UserError) as error:
        load_config(own, {option: 2})
    assert error.value.problems[0].key == f'--cfg-options {option}'
    config = load_config(own, {'test_pipeline.0.scale': (32, 32), 'experiment_name': 'x'})
    assert (config.test_pipeline[0].scale, config.experiment_name) == ((32, 32), 'x')


@pytest.mark.parametrize('runner', [Runner, FlexibleRunner])
def test_what_mmengine_reads_is_known(runner):
    found = set(re.findall(r"\bcfg\.get\(\s*'(\w+)'", inspect.getsource(runner)))
    assert 'train_dataloader' in found
    assert found <= READ_KEYS


@pytest.mark.parametrize(
    ('scheduler', 'key', 'end'),
    [
        (dict(type='PolyLR', by_epoch=False, end=8), 'end', 4),
        (dict(type='PolyLR', by_epoch=False, end=3), 'end', 3),  # it ended before the training
        (dict(type='PolyLR', by_epoch=True, end=8), 'end', 8),  # epochs
        (dict(type='CosineAnnealingLR', by_epoch=False, T_max=8), 'T_max', 4),
    ],
)
def test_what_ended_with_the_training_moves_with_it(scheduler, key, end):
    config = Config(dict(train_cfg=dict(max_iters=4), param_scheduler=[scheduler]))
    move_scheduler_ends(config, 8)
    assert config.param_scheduler[0][key] == end
