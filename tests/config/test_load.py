from mmseg_cct.config.load import load_config


def test_no_workers_persist_where_there_are_none():
    options = {f'{split}_dataloader.num_workers': 0 for split in ('train', 'test')}
    config = load_config('cct/cct_r50_folder', options)
    loaders = [config[f'{split}_dataloader'] for split in ('train', 'val', 'test')]
    assert [loader.persistent_workers for loader in loaders] == [False, True, False]
