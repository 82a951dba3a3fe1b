import shutil
from dataclasses import replace

import pytest
import torch

from mmseg_cct.apis.prepare import Request
from mmseg_cct.apis.train import prepare_training
from mmseg_cct.errors import UserError

pytestmark = pytest.mark.slow


def test_bfloat16_on_the_cpu_is_near_float32(cct, trained):
    cct.train(amp=True, options={'train_cfg.max_iters': 2})
    logged = cct.scalars(cct.folder / 'work')
    first, expected = logged[1][0]['loss'], trained.logged[1][0]['loss']
    assert first == pytest.approx(expected, rel=0.02) and first != expected
    state = cct.load(cct.folder / 'work/iter_2.pth')['state_dict']
    assert not any(value.dtype is torch.bfloat16 for value in state.values())


def write_weak_masks(cct):
    folder = cct.folder / 'weak'
    folder.mkdir()
    for index in range(5):
        shutil.copy(cct.data / 'masks/l0.png', folder / f'u{index}.png')
    return str(folder)


def test_a_resume_goes_on_with_the_options_of_the_start_and_no_others(cct, messages):
    options = {'train_cfg.max_iters': 2}
    weak = write_weak_masks(cct)
    cct.train(amp=True, weak_masks=weak, options=options)
    messages.clear()
    prepared = prepare_training(str(cct.file), Request(work_dir='work', resume='auto'))
    assert prepared.optim_wrapper.type == 'BFloat16OptimWrapper'
    assert prepared.train_dataloader.dataset.weak_masks == weak
    for option in ('--amp', f'--weak-masks {weak}'):
        assert any(option in line for line in messages)
    single = Request(work_dir='work', resume='auto', options={'optim_wrapper.type': 'OptimWrapper'})
    assert prepare_training(str(cct.file), single).optim_wrapper.type == 'OptimWrapper'
    shutil.move(weak, cct.folder / 'moved')
    moved = Request(work_dir='work', resume='auto', weak_masks='moved')
    assert prepare_training(str(cct.file), moved).train_dataloader.dataset.weak_masks == 'moved'
    shutil.copytree(cct.folder / 'moved', weak)
    for request in (moved, replace(moved, weak_masks=None, compile=True)):
        with pytest.raises(UserError) as error:
            prepare_training(str(cct.file), request)
        key = '--compile' if request.compile else '--weak-masks moved'
        assert error.value.problems[0].key == key


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
