import pytest
from mmengine.config import Config
from yapf.yapflib import yapf_api

from mmseg_cct.config.load import chosen_method, load_config, protect, read_config
from mmseg_cct.errors import UserError


def test_a_config_that_names_no_protection_gets_the_shipped_ones():
    plain = Config(dict(default_hooks=dict(nonfinite_loss=dict(type='Own'))))
    protect(plain, {})
    assert list(plain.default_hooks) == ['nonfinite_loss', 'preflight', 'findings', 'resume']
    assert plain.default_hooks.nonfinite_loss.type == 'Own'
    named = Config(dict(default_hooks=dict(preflight=dict(type='PreflightHook'))))
    protect(named, {})
    assert list(named.default_hooks) == ['preflight']
    without = Config({})
    protect(without, {'default_hooks.preflight': None})
    assert not without.default_hooks


def test_a_runs_text_is_written_without_yapf(tmp_path, monkeypatch):
    file = tmp_path / 'own.py'
    file.write_text('model = dict(type="CCTSegmentor", classes=[1, 2])\n')
    monkeypatch.setattr(yapf_api, 'FormatCode', None)
    config = read_config(file)
    config.merge_from_dict({'model.more': 1})
    text = config.pretty_text
    assert Config.fromstring(text, '.py').to_dict() == config.to_dict()


def test_a_hook_that_is_none_is_removed_unless_mmengine_would_add_it(tmp_path):
    file = tmp_path / 'own.py'
    file.write_text("model = dict(type='A')\ndefault_hooks = dict(teacher=None, timer=None)\n")
    assert load_config(str(file), {}).default_hooks == dict(timer=None)


@pytest.mark.parametrize(
    ('options', 'method'),
    [({}, 'cct-strong'), ({'method': 'unimatch'}, 'unimatch'), ({'labels': 5}, 'cct-strong')],
)
def test_a_method_is_known_by_option_or_name(tmp_path, options, method):
    file = tmp_path / 'cct-strong_net_mine.py'
    file.write_text("model = dict(type='A')")
    assert chosen_method(str(file), options) == method
    assert chosen_method(str(file.rename(tmp_path / 'mine.py')), {}) == 'cct'


def test_the_config_that_a_resumed_training_dumped_resumes_nothing_by_itself(tmp_path):
    file = tmp_path / 'dumped.py'
    file.write_text(
        "model = dict(type='EncoderDecoder')\n"
        "load_from, resume = 'iter_2.pth', True\n"
        "default_hooks = dict(resume=dict(type='ResumeHook', checkpoint='x'),\n"
        "    preflight=dict(type='PreflightHook', load_from=None))\n"
    )
    config = load_config(str(file), {})
    assert (config.load_from, config.resume) == (None, False)
    kinds = dict(resume=dict(type='ResumeHook'), preflight=dict(type='PreflightHook'))
    assert config.default_hooks == kinds


def test_a_replaced_dict_is_no_new_key(cct, messages):
    options = {'optim_wrapper.optimizer._delete_': True, 'optim_wrapper.optimizer.type': 'Adam'}
    assert load_config(str(cct.file), options).optim_wrapper.optimizer == dict(type='Adam')
    assert messages == []


def test_a_new_key_is_named(cct, messages):
    load_config(
        str(cct.file),
        {'train_cfg.max_iter': 3, 'train_cfg.val_interval': 2, 'param_scheduler.0.end': 1},
    )
    (message,) = messages
    assert message.startswith('--cfg-options train_cfg.max_iter: a new key')


@pytest.mark.parametrize(
    ('text', 'match'),
    [
        ('a = [1,', 'SyntaxError'),
        ("_base_ = 'missing.py'", r'missing\.py'),
        ('a = 1 / 0', 'ZeroDivisionError'),
        ('raise SystemExit', 'SystemExit'),
        (
            "custom_imports = dict(imports=['no_such_package'], allow_failed_imports=False)",
            "No module named 'no_such_package'; expected .*PYTHONPATH=\\.",
        ),
        (
            'import no_such_package as a',
            "No module named 'no_such_package'; expected .*PYTHONPATH=\\.",
        ),
    ],
)
def test_a_config_that_does_not_load_is_one_line(tmp_path, text, match):
    path = tmp_path / 'bad.py'
    path.write_text(text)
    with pytest.raises(UserError, match=match) as error:
        load_config(str(path), {})
    assert str(error.value).startswith(f'{path}: this config does not load: ')
    assert '\n' not in str(error.value)
