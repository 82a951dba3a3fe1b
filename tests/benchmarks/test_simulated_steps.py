"""Steps on a simulated GPU: devices do not mix, few places wait, and few kernels start."""

import json
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip('triton', reason='not on this platform')
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which('cc'), reason='no C compiler for the driver'),
]

RUN = """
from simulated_steps import DEMO, GPU, train
import json, torch
from mmseg_cct.models import PSPNeck

def step(*method, steps=1, **options):
    try:
        train(DEMO, *method, steps=steps, **options)
    except RuntimeError as error:
        return str(error)
    return dict(GPU.waits), GPU.operations, GPU.of_branch

vat = {'model.auxiliary_head.perturbations.vat.num_decoders': 1}
seen = [step('cct-strong', 'float16', steps=2, **vat), step('supervised', 'float16', steps=2)]
seen.append(step('unimatch'))
forward = PSPNeck.forward

def plant(mistake):
    PSPNeck.forward = lambda self, inputs: (mistake(*forward(self, inputs)),)
    return step('supervised')

one = torch.ones(1)
seen.append(plant(lambda x: x * torch.ones(x.shape)))
seen.append(plant(lambda x: x * bool((x > 0).any()) + one.to(x.device, non_blocking=True)))
print(json.dumps(seen))
"""


def test_few_places_wait_and_planted_mistakes_are_found(project_root):
    command = [sys.executable, '-W', 'ignore', '-c', RUN]
    folder = project_root / 'benchmarks'
    env = {**os.environ, 'PYTHONPATH': str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True)
    assert not done.returncode, done.stderr
    strong, supervised, unimatch, mixed, differing = json.loads(done.stdout.splitlines()[-1])
    boxes, verdict = 'event in detected_objects.boxes', 'event in non_finite_loss_hook._judge'
    assert strong[0] == {boxes: 1, verdict: 1, 'value in amp_optimizer_wrapper.step': 1}
    assert unimatch[0] == {verdict: 1}
    assert 'tensors on the CPU and on the GPU' in mixed
    caller = 'encoder_decoder.extract_feat'  # who calls what was planted
    assert differing[0] == {verdict: 1, f'value in {caller}': 1, f'copy in {caller}': 1}
    # a slow host starts no more at a time; three encodings are most of them
    assert strong[1] <= 2.95 * supervised[1] and strong[2] <= 151, (strong, supervised)
