from mmengine.config import Config

from mmseg_cct.config.load import add_hook, load_config


def test_a_tool_replaces_the_hook_of_the_run_that_dumped_the_config():
    config = Config(dict(default_hooks=dict(preflight=dict(type='Old', load_from='x'), bar=None)))
    add_hook(config, 'preflight', type='New')
    add_hook(config, 'bar', type='Bar')  # None switches it off
    add_hook(config, 'more', type='More')
    assert config.default_hooks.to_dict() == dict(
        preflight=dict(type='New'), bar=None, more=dict(type='More')
    )


def test_no_workers_persist_where_there_are_none():
    options = {f'{split}_dataloader.num_workers': 0 for split in ('train', 'test')}
    config = load_config('cct/cct_r50_folder', options)
    loaders = [config[f'{split}_dataloader'] for split in ('train', 'val', 'test')]
    assert [loader.persistent_workers for loader in loaders] == [False, True, False]
