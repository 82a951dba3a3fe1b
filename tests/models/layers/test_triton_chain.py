"""The Triton kernel by Triton's interpreter, on a CPU: what PyTorch computes at a chunk."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip('triton', reason='not on this platform')

# levels, channels, classes, positions, distance to the main prediction, labels, final ReLU, type
CASES = [
    (1, 2, 2, 50, 'mse_distance', True, False, 'float32'),
    (2, 7, 5, 33, 'mse_distance', False, False, 'float32'),
    (3, 21, 21, 3, 'mse_distance', True, False, 'float32'),
    (1, 40, 37, 40, 'mse_distance', True, True, 'float32'),
    (2, 13, 13, 17, 'kl_distance', True, True, 'float32'),
    (2, 7, 5, 1, 'kl_distance', False, False, 'float32'),
    (2, 5, 7, 33, None, True, False, 'float32'),
    (2, 7, 5, 64, 'mse_distance', True, False, 'float16'),
]
SCRIPT = """
import itertools, json, sys, torch
torch.set_default_device(sys.argv[2])
from unittest import mock
from mmengine.registry import init_default_scope
init_default_scope('mmseg')
from banks import MASKED, PERTURBATIONS, loss_and_gradients, make_bank, make_batch, run_loss
from mmseg_cct.models.layers.kernel_trial import _difference
from mmseg_cct.models.layers.triton_chain import TritonChain
from mmseg_cct.models.losses import auxiliary, chunk_step
from mmseg_cct.models.losses.chunk_step import ChunkStep, TermTensors, kernel_step

def run(levels, channels, classes, size, soft, hard, final_activation, dtype):
    torch.manual_seed(0)
    widths = [channels] * levels + [classes]
    weights = [torch.randn(2, 4 * o, i) * (2 / i) ** 0.5 for i, o in itertools.pairwise(widths)]
    biases = [0.1 * torch.randn(2, 4 * o, 1) for o in widths[1:]]
    features = torch.randn(2, channels, size)
    maps = 1, 4, size * 4 ** (levels - 1)
    terms, distances = [], []
    if soft:
        weight = (torch.rand(maps) > 0.3).float()
        terms.append(TermTensors(None, weight, torch.tensor(0.7), None))
        distances.append(getattr(auxiliary, soft))
    if hard:
        labels, weight = torch.randint(0, classes, maps), torch.rand(maps)
        terms.append(TermTensors(labels, weight, torch.tensor(1.3), None))
        distances.append(auxiliary.label_cross_entropy)
    step, chunk = ChunkStep(tuple(distances), final_activation, True), (weights, biases)
    chunk += 2 * torch.randn(classes, *maps[1:]), terms
    kernel = TritonChain(soft == 'kl_distance')
    features = features.to(getattr(torch, dtype))
    first, second = (kernel_step(step, kernel, features, *chunk) for _ in range(2))
    expected = step(features.float(), *chunk)
    assert [g.dtype for g in first[0][1]] == [torch.float32] * levels
    assert _difference(first, second) == 0  # the same bits
    assert first[2].equal(expected[2]) or dtype != 'float32'
    return _difference(first, expected)


results = [run(*case) for case in json.loads(sys.argv[1])]

# the whole bank, in several chunks
chunk_step._triton_fits = lambda *_: True
chunk_step.native_chain = lambda *_: None
chunk_step.wins_trial = lambda *_: True
weak = dict(type='WeakCrossEntropy', loss_weight=0.4)
few = dict(dropout=PERTURBATIONS['dropout'])
for settings in (dict(loss_weak=weak), dict(position_fraction=0.4, channels=7)):
    settings.update(perturbations=few, loss_consistency=MASKED, stride=4, memory_budget=6_000)
    (loss, grads), expected = (
        loss_and_gradients(make_bank(compile=c, **settings)) for c in ('auto', False)
    )
    assert torch.allclose(loss, expected[0], rtol=1e-5)
    results.append(max(float((a - e).norm() / e.norm()) for a, e in zip(grads, expected[1])))
z, seg_logits, samples = make_batch(stride=2)
bank = make_bank(few, compile='auto', loss_consistency=MASKED, stride=2)
assert run_loss(bank, (z, seg_logits * torch.nan, samples))['loss'].isnan()
print(json.dumps(results))
"""


def largest_differences(cases, device):
    env = {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, sys.path))}
    env |= {'TRITON_INTERPRET': '1'} if device == 'cpu' else {}
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', SCRIPT, json.dumps(cases), device],
        env=env,
        text=True,
        capture_output=True,
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope='module')
def errors():
    return dict(zip([*map(str, CASES), 'bank', 'bank, some'], largest_differences(CASES, 'cpu')))


@pytest.mark.parametrize('case', CASES, ids=str)
def test_gradients_and_sums_are_those_of_pytorch(errors, case):
    assert errors[str(case)] < (1e-3 if case[-1] == 'float16' else 1e-6)


def test_a_bank_has_the_losses_and_gradients_of_pytorch(errors):
    assert max(errors['bank'], errors['bank, some']) < 1e-5


@pytest.mark.gpu
def test_a_gpu_computes_the_same():
    cases = [*CASES, (2, 7, 5, 64, 'mse_distance', True, False, 'bfloat16')]
    # TensorFloat-32 in three parts, as PyTorch's own products are exact
    assert max(largest_differences([c for c in cases if c[-1] == 'float32'], 'cuda')) < 1e-4
    assert max(largest_differences([c for c in cases if c[-1] != 'float32'], 'cuda')[:2]) < 2e-2
