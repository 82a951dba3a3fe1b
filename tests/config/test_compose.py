import pytest
import world
from mmengine.config import Config

from mmseg_cct.config.compose import read_method, with_labels, with_method
from mmseg_cct.config.load import default_work_dir, load_config
from mmseg_cct.config.shipped import PLAIN
from mmseg_cct.errors import UserError

BANK = dict(type='PerturbedDecoderBank', in_channels=6, loss_consistency=dict(type='MSE', w=30.0))
FCN = dict(type='FCNHead')


def setting(**model):
    model = dict(type='CCTSegmentor', auxiliary_head=dict(BANK), **model)
    parts = dict(labeled=dict(type='A'), unlabeled=dict(type='A'))
    return Config(dict(model=model, train_dataloader=dict(dataset=parts)))


def merge(config, **overlay):
    return with_method(config, overlay)


@pytest.fixture
def own(tmp_path):
    """A setting of one's own, and a method of one's own."""
    file, method = tmp_path / 'cct_net_data_2.py', tmp_path / 'fast.py'
    config = world.cct_config('data')
    config.train_dataloader.dataset.update(split_dir='lists', num_labeled=2)
    del config.model.auxiliary_head['perturbations']  # the paper's
    config.dump(file)
    method.write_text('optim_wrapper = dict(optimizer=dict(lr=0.5))')
    return str(file), str(method)


def test_a_method_has_a_name_or_is_a_file(own):
    assert read_method(PLAIN) == {}
    assert read_method(own[1]) == dict(optim_wrapper=dict(optimizer=dict(lr=0.5)))
    assert read_method('supervised')['model']['auxiliary_head'] is None


def test_dicts_are_merged_and_all_else_is_replaced_or_comes_back():
    config = setting(decode_head=dict(type='A', losses=dict(a=1), norm=dict(b=2)))
    config.default_hooks = dict(teacher=None, timer=None)
    config.optim_wrapper = dict(paramwise_cfg=None)
    config = merge(
        config,
        model=dict(type='B', decode_head=dict(losses=[3], norm=dict(c=4))),
        default_hooks=dict(teacher=dict(decay=0.5)),
        optim_wrapper=dict(paramwise_cfg=dict(norm_decay_mult=0.0)),
    )
    assert config.model.type == 'B'
    assert config.model.decode_head == dict(type='A', losses=[3], norm=dict(b=2, c=4))
    assert config.default_hooks == dict(teacher=dict(decay=0.5), timer=None)
    assert config.optim_wrapper.paramwise_cfg == dict(norm_decay_mult=0.0)


@pytest.mark.parametrize('beside', [[], [FCN, FCN]])
def test_auxiliary_head_means_the_decoders_beside_other_heads(beside):
    config = setting()
    if beside:
        config.model.auxiliary_head = [*beside, dict(BANK)]
    config = merge(config, model=dict(auxiliary_head=dict(loss_consistency=dict(w=1.0))))
    changed = dict(BANK, loss_consistency=dict(type='MSE', w=1.0))
    assert config.model.auxiliary_head == ([*beside, changed] if beside else changed)
    config = merge(config, model=dict(auxiliary_head=None))
    assert config.model.auxiliary_head == (beside or None)


@pytest.mark.parametrize('prefix', ['', 'domains.*.'])
def test_ramps_of_the_decoders_go_with_them(prefix):
    config = setting()
    ramp, other = (
        dict(attribute=f'{prefix}{head}.x') for head in ('auxiliary_head', 'decode_head')
    )
    config.default_hooks = dict(ramp_up=ramp, moved=ramp, other=other, timer=None)
    overlay = dict(moved=dict(attribute='loss_consistency.x'))
    config = merge(config, model=dict(auxiliary_head=None), default_hooks=overlay)
    assert config.default_hooks == dict(**overlay, other=other, timer=None)


def test_dataset_means_the_sets_of_all_domains():
    pair = dict(type='SemiSegDataset', unlabeled=dict(type='A'))
    config = setting(domains=dict(a={}, b={}))
    config.train_dataloader.dataset = dict(type='M', domains=dict(a=dict(pair), b=dict(pair)))
    config = merge(config, train_dataloader=dict(batch_size=2, dataset=dict(unlabeled=None)))
    baseline = dict(type='SemiSegDataset', unlabeled=None)
    assert config.train_dataloader.to_dict() == dict(
        batch_size=2, dataset=dict(type='M', domains=dict(a=baseline, b=baseline))
    )


def test_several_domains_keep_their_segmentor_and_name_their_ramps():
    config = merge(
        setting(domains=dict(a={})),
        model=dict(type='EncoderDecoder', discriminator=dict(type='D')),
        default_hooks=dict(ramp=dict(attribute='decode_head.x'), gone=None),
    )
    assert config.model.type == 'CCTSegmentor'
    assert config.model.discriminator == dict(type='D', in_channels=6)
    assert config.default_hooks.ramp == dict(attribute='domains.*.decode_head.x')


@pytest.mark.parametrize(
    ('model', 'overlay'),
    [
        (dict(auxiliary_head=FCN), {}),  # no auxiliary decoders
        ({}, dict(discriminator=dict(type='D'))),  # of several domains
        (dict(domains=dict(a={})), dict(type='CCTPlusSegmentor')),  # of one
    ],
)
def test_a_method_that_does_not_fit_is_refused(model, overlay):
    config = setting()
    config.model.update(model)
    with pytest.raises(UserError) as caught:
        merge(config, model=overlay)
    assert caught.value.problems[0].key == 'the config'


def test_labels_are_set_in_each_domain_with_a_folder_of_lists():
    config = setting()
    with pytest.raises(UserError, match=r'split_dir: missing; .* 5_labeled\.txt and 5_unlab'):
        with_labels(config, 5)
    sets = dict(a=dict(split_dir='a'), b=dict(split_dir='b', num_labeled=9))
    config.train_dataloader.dataset = dict(domains=sets)
    config = with_labels(config, 5)
    assert [part.num_labeled for part in config.train_dataloader.dataset.domains.values()] == [5, 5]


def test_another_number_of_labels_keeps_the_length(own):
    file, fast = own
    config = load_config(file, {'labels': 7})
    assert config.train_dataloader.dataset.num_labeled == 7
    assert config.train_cfg.max_iters == config.param_scheduler[0].end == 6
    assert default_work_dir(config) == 'work_dirs/cct_net_data_7'
    key = 'optim_wrapper.optimizer.lr'  # an option wins over a method
    assert load_config(file, {'method': fast}).optim_wrapper.optimizer.lr == 0.5
    config = load_config(file, {'method': fast, key: 2.0, 'train_cfg.max_iters': 4})
    assert (config.optim_wrapper.optimizer.lr, config.param_scheduler[0].end) == (2.0, 4)
    assert default_work_dir(config) == 'work_dirs/fast_net_data_2'


@pytest.mark.parametrize('method', [PLAIN, 'supervised', 'unimatch'])
def test_a_method_takes_the_place_of_the_one_that_a_config_holds(own, method, tmp_path):
    """A config of `tools/new_config.py` is whole, and so holds its method."""
    holds = tmp_path / 'cct-strong_net_data_2.py'
    load_config(own[0], {'method': 'cct-strong'}).dump(holds)
    config, plain = load_config(str(holds), {'method': method}), load_config(own[0], {})
    plain = with_method(
        plain, {'default_hooks': dict(teacher=dict(type='TeacherHook', decay=0.99))}
    )
    plain = with_method(plain, method)
    assert config.to_dict() == plain.to_dict()


def test_a_method_adds_what_the_one_before_has_removed(own, tmp_path):
    holds = tmp_path / 'supervised_net_data_2.py'
    load_config(own[0], {'method': 'supervised'}).dump(holds)
    before = load_config(str(holds), {})
    assert before.train_dataloader.dataset.unlabeled is None
    overlay = dict(dataset=dict(unlabeled=dict(type='A')))
    config = merge(before, model=dict(auxiliary_head=None), train_dataloader=overlay)
    assert config.train_dataloader.dataset.unlabeled == dict(type='A')
    assert before.train_dataloader.dataset.unlabeled is None


def test_the_supervised_baseline_of_a_cascade_is_a_cascade():
    config = merge(setting(decode_head=[FCN, FCN], num_stages=2), **read_method('supervised'))
    assert config.model.type == 'CascadeEncoderDecoder'
    assert config.model.num_stages == 2
