import pytest
from banks import ALL_TERMS, MSE, make_bank, run_loss

from mmseg_cct.models.layers import chunking
from mmseg_cct.models.losses import chunk_step

WEAK = ALL_TERMS['loss_weak']


@pytest.mark.parametrize(
    ('settings', 'tried'),
    [
        (dict(), True),
        (dict(loss_consistency=dict(type='KLConsistency'), loss_weak=WEAK), True),
        (dict(loss_consistency=dict(type='JSConsistency')), False),
        (dict(loss_pairwise=ALL_TERMS['loss_pairwise']), False),
    ],
)
def test_the_triton_kernel_is_tried_where_it_has_the_losses(monkeypatch, settings, tried):
    pytest.importorskip('triton', reason='not on this platform')
    trials, steps = [], []
    expected = run_loss(make_bank(memory_budget=100_000, **settings))['loss']

    def wins(key, kernel, current, reference, chunks):
        small, large = chunks()
        assert small[0].shape[-1] == 2 and large[0].shape[-1] == 4
        for run_chunk in (current, reference):
            assert run_chunk(*large)[0][0].shape == large[0].shape
        trials.append(hash(key))
        return len(trials) == 2

    def kernel_step(step, kernel, *chunk):
        steps.append((kernel.kl, chunk[0].shape[-1]))
        return step(*chunk)

    monkeypatch.setattr(chunking, 'MIN_POSITIONS', 1)  # all decoders in a chunk
    monkeypatch.setattr(chunk_step, 'native_chain', lambda *_: None)
    monkeypatch.setattr(chunk_step, '_triton_fits', lambda *_: True)
    monkeypatch.setattr(chunk_step, 'kernel_step', kernel_step)
    monkeypatch.setattr(chunk_step, 'wins_trial', wins)
    monkeypatch.setattr(chunk_step, 'TRIAL_POSITIONS', 2)
    bank = make_bank(memory_budget=100_000, compile='auto', **settings)
    for won in (False, True):
        assert run_loss(bank)['loss'].item() == pytest.approx(expected.item(), rel=1e-5)
        assert bool(steps) == (tried and won)
    assert len(trials) == 2 * tried
    # without logits a chunk has room for more positions, in tiles
    kl = settings.get('loss_consistency', MSE)['type'] == 'KLConsistency'
    assert {*steps} == ({(kl, 32)} if tried else set())
