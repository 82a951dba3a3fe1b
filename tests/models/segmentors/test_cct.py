import copy

import pytest
import tiny
import torch
import torch.distributed
from mmengine.optim import OptimWrapper
from mmengine.registry import MODEL_WRAPPERS
from mmengine.structures import PixelData
from mmseg.registry import MODELS

N, SIZE = 2, (32, 32)


def make_model(weights=(30.0, 0.4, 1.0), **kwargs):
    """ω_u, ω_w and λ_pw; None leaves L_w or L_pw out."""
    torch.manual_seed(0)
    config = tiny.model_config(**kwargs)
    bank = config['auxiliary_head']
    bank['loss_consistency']['loss_weight'] = weights[0]
    if weights[1] is not None:
        bank['loss_weak'] = dict(type='WeakCrossEntropy', loss_weight=weights[1])
    if weights[2] is not None:
        bank['loss_pairwise'] = dict(type='PairwiseVariance', loss_weight=weights[2])
    return MODELS.build(config)


def make_batch():
    """As the data loader gives it, with pseudo labels."""
    batch = tiny.raw_batch()
    for sample in batch['data_samples']['unlabeled']:
        sample.pseudo_sem_seg = PixelData(data=torch.randint(0, 3, (1, *SIZE)))
    return batch


def losses_of(model, batch=None, seed=2):
    data = model.data_preprocessor(copy.deepcopy(batch or make_batch()), training=True)
    torch.manual_seed(seed)
    return model(**data, mode='loss')


def gradients_of(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


def supervised_twin(model):
    config = tiny.model_config(type='EncoderDecoder')
    del config['auxiliary_head']
    twin = MODELS.build(config)
    state = {k: v for k, v in model.state_dict().items() if not k.startswith('auxiliary_head.')}
    twin.load_state_dict(state)
    return twin


def test_main_decoder_learns_from_labelled_images_alone():
    """As MMSeg's `EncoderDecoder` does."""
    model, batch = make_model(), make_batch()
    losses, twin = losses_of(model), supervised_twin(model)
    total, _ = model.parse_losses(losses)
    loss = losses_of(twin, {key: batch[key]['labeled'] for key in batch})['decode.loss_ce']
    torch.testing.assert_close(losses['decode.loss_ce'], loss)
    expected = gradients_of(twin, loss)
    actual = gradients_of(model, total)
    main = [name for name in actual if name.startswith('decode_head.')]
    assert main == [name for name, _ in model.named_parameters() if name.startswith('decode_head.')]
    for name in main:
        torch.testing.assert_close(actual[name], expected[name])
    # the encoder learns from both
    for part in ('backbone.', 'neck.'):
        assert any(
            not torch.allclose(actual[name], expected[name])
            for name in expected
            if name.startswith(part)
        )


@pytest.mark.parametrize('weights', [(30.0, None, None), (0.0, 0.4, None), (0.0, None, 1.0)])
def test_each_auxiliary_loss_trains_encoder_and_auxiliary_decoders_only(weights):
    model = make_model(weights)
    gradients = gradients_of(model, losses_of(model)['aux.loss'])
    assert not [name for name in gradients if name.startswith('decode_head.')]
    expected = [n for n, _ in model.named_parameters() if not n.startswith('decode_head.')]
    assert list(gradients) == expected
    for name in expected:
        if name.startswith(('auxiliary_head.', 'neck.')):
            assert gradients[name].abs().max() > 0, name


def test_a_key_contains_loss_only_if_it_is_optimised():
    model, calls = make_model(), []
    model.decode_head.upsample.register_forward_hook(lambda *call: calls.append(call[-1]))
    losses = losses_of(model)
    terms = {'aux.loss', 'aux.consistency', 'aux.weak_ce', 'aux.pairwise'}
    assert losses.keys() >= {'decode.loss_ce', *terms}
    for key, value in losses.items():
        assert ('loss' in key) == value.requires_grad, key
    assert [call.requires_grad for call in calls] == [True, False]  # no graph of the target


def test_the_teacher_predicts_the_target_on_the_unlabelled_images():
    model = make_model()
    teacher = tiny.with_teacher(model)
    state = copy.deepcopy(teacher.state_dict())
    data = model.data_preprocessor(make_batch(), training=True)
    seen = tiny.calls(model.auxiliary_head, 'loss')
    model(**data, mode='loss')
    with torch.no_grad():
        expected = teacher(data['inputs']['unlabeled'], mode='tensor')
    ((_, target, samples, objects),) = seen
    assert objects.seg_logits.shape == target.shape  # detected beforehand
    torch.testing.assert_close(target, expected)
    assert not target.requires_grad and samples is data['data_samples']['unlabeled']
    for name, value in teacher.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_trains_under_ddp_without_looking_for_unused_parameters(tmp_path):
    """The second iteration would fail if a parameter got no gradient in the first."""
    model, alone = make_model(), make_model()
    torch.distributed.init_process_group(
        'gloo', init_method=f'file://{tmp_path}/rendezvous', rank=0, world_size=1
    )
    try:
        ddp = dict(type='MMDistributedDataParallel', device_ids=None, broadcast_buffers=False)
        wrapped = MODEL_WRAPPERS.build(dict(ddp, module=model, find_unused_parameters=False))
        for trained in (wrapped, alone):
            wrapper = OptimWrapper(torch.optim.SGD(trained.parameters(), 0.1))
            for _ in range(2):
                torch.manual_seed(2)
                trained.train_step(make_batch(), wrapper)
    finally:
        torch.distributed.destroy_process_group()
    for actual, expected in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(actual, expected)


def test_a_baseline_of_the_same_seed_starts_from_the_same_weights():
    """Else the difference of the two is that of two random starts, of several points in mIoU."""
    starts = []
    for changes in ({}, dict(type='EncoderDecoder', auxiliary_head=None)):
        torch.manual_seed(0)
        model = MODELS.build(dict(tiny.model_config(), **changes))
        model.init_weights()
        starts.append({name: value.clone() for name, value in model.state_dict().items()})
    cct, baseline = starts
    assert baseline and all(torch.equal(cct[name], value) for name, value in baseline.items())
