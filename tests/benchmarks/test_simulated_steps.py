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

def waits(*step, **options):
    try:
        train(DEMO, *step, steps=1, **options)
    except RuntimeError as error:
        return str(error)
    return dict(GPU.waits)

vat = {'model.auxiliary_head.perturbations.vat.num_decoders': 1}
steps = [waits('cct-strong', 'float16', **vat), waits('unimatch')]

def operations(*step):
    train('cct/cct_r50_voc_1464', *step)
    return GPU.operations, GPU.of_branch

counts = [[operations(m, t) for m in ('cct-strong', 'supervised')] for t in ('', 'bfloat16')]
forward = PSPNeck.forward

def plant(mistake):
    PSPNeck.forward = lambda self, inputs: (mistake(*forward(self, inputs)),)
    return waits('supervised')

mixed = plant(lambda x: x * torch.ones(x.shape))
found = plant(lambda x: x * bool((x > 0).any()) + torch.ones(1).to(x.device, non_blocking=True))
print(json.dumps([steps, counts, mixed, found]))
"""


def test_few_places_wait_and_planted_mistakes_are_found(project_root):
    command = [sys.executable, '-W', 'ignore', '-c', RUN]
    folder = project_root / 'benchmarks'
    env = {**os.environ, 'PYTHONPATH': str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True)
    assert not done.returncode, done.stderr
    (strong, unimatch), counts, mixed, differing = json.loads(done.stdout.splitlines()[-1])
    boxes, verdict = 'event in detected_objects.boxes', 'event in non_finite_loss_hook.read'
    assert strong == {boxes: 1, verdict: 1, 'value in amp_optimizer_wrapper.step': 1}
    assert unimatch == {verdict: 1}
    assert 'tensors on the CPU and on the GPU' in mixed
    caller = 'encoder_decoder.extract_feat'  # who calls what was planted
    assert differing == {verdict: 1, f'value in {caller}': 1, f'copy in {caller}': 1}
    # a slow host starts no more at a time; three encodings are most of them
    for ((of_method, of_branch), (of_baseline, _)), bounds in zip(counts, [(3.1, 180), (2.8, 212)]):
        assert of_method <= bounds[0] * of_baseline and of_branch <= bounds[1]
