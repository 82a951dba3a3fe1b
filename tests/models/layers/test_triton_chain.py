"""The Triton kernel by Triton's interpreter, on a CPU: what PyTorch computes at a chunk."""

import pytest
from banks import run_compiling

pytest.importorskip('triton', reason='not on this platform')

SCRIPT = """
import itertools, sys, torch
torch.set_default_device(sys.argv[1])
from mmseg_cct.models.layers.kernel_trial import _difference
from mmseg_cct.models.layers.triton_chain import TritonChain
from mmseg_cct.models.losses import auxiliary
from mmseg_cct.models.losses.chunk_step import ChunkStep, TermTensors, kernel_step

# levels, channels, classes, positions, distance to the main prediction, labels, final ReLU, type,
# largest difference; on a GPU with TensorFloat-32 in three parts, as PyTorch's products are exact
exact, half = (1e-6, 1e-3) if sys.argv[1] == 'cpu' else (1e-4, 2e-2)
CASES = [
    (1, 2, 2, 50, 'mse_distance', True, False, 'float32', exact),
    (2, 40, 37, 33, 'mse_distance', False, True, 'float32', exact),
    (2, 13, 13, 17, 'kl_distance', True, True, 'float32', exact),
    (3, 5, 7, 3, None, True, False, 'float32', exact),
    (2, 16, 5, 64, 'mse_distance', True, False, 'float16', half),
]

def check(levels, channels, classes, size, soft, hard, final_activation, dtype, tolerance):
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
    assert _difference(first, expected) < tolerance, _difference(first, expected)

for case in CASES:
    check(*case)

# NaN stays NaN
step, features = ChunkStep((auxiliary.mse_distance,), True, False), torch.zeros(2, 3, 5) / 0
term = TermTensors(None, torch.zeros(1, 4, 5), torch.tensor(1.0), None)
weights, biases = [torch.rand(2, 12, 3)], [torch.rand(2, 12, 1)]
chunk = features, weights, biases, torch.rand(3, 4, 5), [term]
_, (values,), _ = kernel_step(step, TritonChain(False), *chunk)
assert values.isnan().all()
"""


@pytest.mark.parametrize(
    'device',
    [pytest.param('cpu', marks=pytest.mark.slow), pytest.param('cuda', marks=pytest.mark.gpu)],
)
def test_losses_and_gradients_are_those_of_pytorch(device):
    run_compiling(SCRIPT, device, **dict(TRITON_INTERPRET='1') if device == 'cpu' else {})
