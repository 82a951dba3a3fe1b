import pytest
from mmengine.config import Config
from yapf.yapflib import yapf_api

from mmseg_cct.config.load import add_hook, load_config, read_config
from mmseg_cct.errors import UserError


def test_a_tool_replaces_the_hook_of_the_run_that_dumped_the_config():
    config = Config(dict(default_hooks=dict(preflight=dict(type='Old', load_from='x'), bar=None)))
    add_hook(config, 'preflight', type='New')
    add_hook(config, 'bar', type='Bar')  # None switches it off
    add_hook(config, 'more', type='More')
    assert config.default_hooks.to_dict() == dict(
        preflight=dict(type='New'), bar=None, more=dict(type='More')
    )


def test_a_runs_text_is_written_without_yapf(tmp_path, monkeypatch):
    file = tmp_path / 'own.py'
    file.write_text('model = dict(type="CCTSegmentor", classes=[1, 2])\n')
    monkeypatch.setattr(yapf_api, 'FormatCode', None)
    config = read_config(file)
    config.merge_from_dict({'model.more': 1})
    text = config.pretty_text
    assert Config.fromstring(text, '.py').to_dict() == config.to_dict()


@pytest.mark.parametrize(
    ('key', 'fixed'), [('epochs', 'max_iters'), ('val_epochs', 'val_interval')]
)
def test_epochs_for_a_config_of_iterations_are_refused(key, fixed):
    with pytest.raises(UserError, match=rf'{key}: .*{fixed}=\d+; expected train_cfg\.{fixed}$'):
        load_config('cct/cct_mbv2-jpu_idd-lite_20', {key: 3})
