from folders import write

from mmseg_cct.config.load import load_config


def test_it_trains_its_own_method_unless_another_is_named(data):
    file = write(data, method='unimatch').file
    assert file.name == 'unimatch_mbv2_mine.py'
    assert load_config(str(file), {}).train_dataloader.dataset.strong_views.num_views == 2
    baseline = load_config(str(file), {'method': 'supervised'})
    assert baseline.model.type == 'EncoderDecoder' and baseline.model.auxiliary_head is None
