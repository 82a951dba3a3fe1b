import pytest
import torch

pytestmark = pytest.mark.slow


def test_bfloat16_on_the_cpu_is_near_float32(cct, trained):
    cct.train(amp=True, options={'train_cfg.max_iters': 2})
    logged = cct.scalars(cct.folder / 'work')
    first, expected = logged[1][0]['loss'], trained.logged[1][0]['loss']
    assert first == pytest.approx(expected, rel=0.02) and first != expected
    state = cct.load(cct.folder / 'work/iter_2.pth')['state_dict']
    assert not any(value.dtype is torch.bfloat16 for value in state.values())


@pytest.mark.gpu
@pytest.mark.parametrize('dtype', ['float16', 'bfloat16'])
def test_half_precision_on_a_gpu(cct, dtype):
    cct.train(
        amp=True, options={'optim_wrapper.dtype': dtype, 'default_hooks.checkpoint.interval': 1}
    )
    last = cct.load(cct.folder / 'work/iter_6.pth')
    # a step is skipped, and the scale halved from 2¹⁶, where a gradient is not finite; bfloat16 has
    # float32's range and no scaler
    scaler = last['optimizer'].get('loss_scaler')
    assert (scaler is None) == (dtype == 'bfloat16')
    assert scaler is None or scaler['scale'] >= 2**14
    assert all(value.isfinite().all() for value in last['state_dict'].values())
    first = cct.load(cct.folder / 'work/iter_1.pth')['state_dict']
    for name in ('decode_head.conv_seg.weight', 'auxiliary_head.up.0.weight'):
        assert not torch.equal(first[name], last['state_dict'][name]), name


def test_activation_checkpointing_changes_nothing(cct):
    """After one step, the momentum that is kept is the gradient."""
    cct.train('plain', options={'train_cfg.max_iters': 1})
    cct.train('less', options={'train_cfg.max_iters': 1, 'model.backbone.with_cp': True})
    plain, less = (
        cct.load(cct.folder / name / 'iter_1.pth')['optimizer']['state']
        for name in ('plain', 'less')
    )
    torch.testing.assert_close(less, plain, rtol=1e-4, atol=1e-6)
