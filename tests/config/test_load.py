import pytest
from mmengine.config import Config
from yapf.yapflib import yapf_api

from mmseg_cct.config.load import add_hook, chosen_method, load_config, read_config


def test_a_tool_replaces_the_hook_of_the_run_that_dumped_the_config():
    config = Config(dict(default_hooks=dict(preflight=dict(type='Old', load_from='x'), bar=None)))
    add_hook(config, 'preflight', type='New')
    add_hook(config, 'bar', type='Bar')  # None switches it off
    add_hook(config, 'more', type='More')
    assert config.default_hooks.to_dict() == dict(
        preflight=dict(type='New'), bar=None, more=dict(type='More')
    )


def test_the_config_of_an_old_run_loads_without_the_hook_that_is_gone(tmp_path):
    file = tmp_path / 'dumped.py'
    file.write_text(
        "_base_ = 'mmseg_cct::demo/cct_shapes.py'\n"
        "default_hooks = dict(calibration=dict(type='CalibrationHook'))\n"
    )
    assert 'calibration' not in load_config(str(file), {}).default_hooks


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
    assert chosen_method('unimatch_r50_voc_183', {}) == 'unimatch'
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
