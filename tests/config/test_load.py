from mmengine.config import Config

from mmseg_cct.config.load import add_hook


def test_a_tool_replaces_the_hook_of_the_run_that_dumped_the_config():
    config = Config(dict(default_hooks=dict(preflight=dict(type='Old', load_from='x'), bar=None)))
    add_hook(config, 'preflight', type='New')
    add_hook(config, 'bar', type='Bar')  # None switches it off
    add_hook(config, 'more', type='More')
    assert config.default_hooks.to_dict() == dict(
        preflight=dict(type='New'), bar=None, more=dict(type='More')
    )
