"""Steps on a simulated GPU: devices do not mix, and few places wait."""

import json
import shutil
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which('cc'), reason='no C compiler for the driver'),
]

RUN = """
from simulated_steps import DEMO, GPU, STEPS, train
import json, torch
from mmseg_cct.models import PSPNeck

def waits(step):
    try:
        train(*step.split(':'), steps=1)
    except RuntimeError as error:
        return str(error)
    return dict(GPU.waits)

steps = [waits(step) for step in STEPS]
forward = PSPNeck.forward

def plant(mistake):
    PSPNeck.forward = lambda self, inputs: (mistake(*forward(self, inputs)),)
    return waits(f'{DEMO}:supervised')

mixed = plant(lambda x: x * torch.ones(x.shape))
found = plant(lambda x: x * bool((x > 0).any()) + torch.ones(1).to(x.device, non_blocking=True))
print(json.dumps([steps, mixed, found]))
"""


def test_few_places_wait_and_planted_mistakes_are_found(project_root):
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', RUN],
        cwd=project_root / 'benchmarks',
        text=True,
        capture_output=True,
    )
    assert not done.returncode, done.stderr
    steps, mixed, found = json.loads(done.stdout.splitlines()[-1])
    boxes, verdict = 'event in transfer.wait', 'event in non_finite_loss_hook.read'
    scaler = 'value in amp_optimizer_wrapper.step'
    assert [*map(set, steps)] == [
        {boxes, verdict},
        {boxes, verdict, scaler},
        {boxes, verdict},
        {verdict},
    ]
    assert {count for waits in steps for count in waits.values()} == {1}
    assert 'tensors on the CPU and on the GPU' in mixed
    place = 'encoder_decoder.extract_feat'  # who calls what was planted
    assert found == {verdict: 1, f'value in {place}': 1, f'copy in {place}': 1}
