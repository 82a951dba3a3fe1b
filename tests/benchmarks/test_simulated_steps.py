"""Steps of all models and methods on a simulated GPU: devices do not mix, and few places wait."""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from settings import DISTINCT, SINGLE, fits, parse

from mmseg_cct.config.shipped import method_names
from mmseg_cct.config.walk import leaves

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, ('cc', 'gcc', 'clang'))),
        reason="no C compiler, which the simulated GPU's driver needs",
    ),
]

BOXES = 'copy to the host: mmseg_cct/models/perturbations/base.py bounding_boxes'
VERDICT = 'event: mmseg_cct/engine/hooks/non_finite_loss_hook.py is_finite'
# of heads of MMSeg, twice each time
ACCURACY = r'nonzero: mmseg/models/losses/accuracy\.py accuracy.*'
SCALER = 'value: mmengine/optim/optimizer/amp_optimizer_wrapper.py step'
SMALL = ('--size', '64', '64', '--images', '2')


def kinds(name):
    """The components of a model; two of the same ones differ in sizes, which no GPU minds."""
    return frozenset(v for k, v in leaves(parse(name).model) if k.endswith('type'))


MODELS = list({kinds(name): name for name in DISTINCT}.values())
HALF = len(MODELS) // 2


@pytest.fixture
def simulate(project_root, tmp_path):
    """Runs the benchmark and gives its rows, which say what went wrong, if anything."""

    def run(configs, *options, methods=('own',)):
        tool = project_root / 'benchmarks' / 'simulated_steps.py'
        command = [sys.executable, tool, '--configs', *configs, '--methods', *methods, *SMALL]
        command += [*options, '--json', tmp_path / 'rows.json']
        done = subprocess.run(command, cwd=project_root, text=True, capture_output=True)
        assert (tmp_path / 'rows.json').is_file(), (done.returncode, done.stderr)
        return json.loads((tmp_path / 'rows.json').read_text())

    return run


def check(row, scaled=False):
    assert 'error' not in row, row
    assert bool(row['idle']) == bool(
        re.search('cityscapes-|camvid-idd', row['config'])
    )  # of the other domain
    waits = row['waits']
    assert waits.pop(VERDICT) == 1
    assert waits.pop(BOXES, 1) == 1
    assert not scaled or waits.pop(SCALER, 1) == 1  # not of fused optimizers
    assert all(re.fullmatch(ACCURACY, place) and n in (2, 4) for place, n in waits.items()), row


@pytest.mark.parametrize('names', [MODELS[:HALF], MODELS[HALF:]], ids=['first', 'second'])
def test_every_model_takes_a_step(names, simulate):
    rows = simulate(names, '--steps', '1')
    assert len(rows) == len(names)
    for row in rows:
        check(row)


def test_every_method_takes_a_step_in_float16(simulate):
    methods = [method for method in method_names() if fits(method, SINGLE)]
    rows = simulate([SINGLE], '--steps', '1', '--amp', 'float16', methods=methods)
    assert [row['method'] for row in rows] == methods
    for row in rows:
        check(row, scaled=True)


def test_a_later_step_and_a_validation(simulate):
    """With a scaler, in channels-last (the demo), and of several domains with a discriminator."""
    names = ['cct/cct_r50_voc_1464', 'demo/cct_shapes']
    rows = simulate(names, '--amp', 'float16', '--validate', methods=['cct', 'unimatch'])
    assert len(rows) == 4
    names = ['multi_domain/cct_mbv2-jpu_camvid-idd_20']
    rows += simulate(names, '--amp', 'float16', '--validate', methods=['cct-adv'])
    for row in rows:
        check(row, scaled=True)


MISTAKES = """
    import torch
    from mmengine.hooks import Hook
    from mmengine.registry import HOOKS

    @HOOKS.register_module()
    class MistakeHook(Hook):
        def __init__(self, mistake):
            self.mistake = mistake

        def before_train_iter(self, runner, batch_idx, data_batch=None):
            weight = next(runner.model.parameters())
            if self.mistake == 'cpu mask':
                weight * torch.ones(weight.shape)
            elif self.mistake == 'any':
                bool((weight > 0).any())
            else:
                torch.ones(3).to(weight.device, non_blocking=True)
"""


def test_planted_mistakes_are_found(simulate, project_root, tmp_path, monkeypatch):
    (tmp_path / 'mmseg_cct').mkdir()  # so that it is named as a place of this project
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path / "mmseg_cct"}:{project_root}')
    (tmp_path / 'mmseg_cct' / 'mistake_hook.py').write_text(textwrap.dedent(MISTAKES))
    configs = []
    for mistake in ('cpu mask', 'any', 'unpinned'):
        configs.append(str(tmp_path / f'{mistake}.py'))
        Path(configs[-1]).write_text(
            f'_base_ = {str(project_root / "configs/demo/cct_shapes.py")!r}\n'
            "custom_imports = dict(imports=['mmseg_cct.plugin', 'mistake_hook'])\n"
            f"custom_hooks = [dict(type='MistakeHook', mistake={mistake!r})]\n"
        )
    mixed, read, copied = simulate(configs, '--steps', '1')
    assert mixed['error'].startswith('RuntimeError: aten.mul.Tensor: a tensor of (')
    place = 'mmseg_cct/mistake_hook.py before_train_iter'
    assert (read['waits'][f'value: {place}'], copied['waits'][f'copy to the GPU: {place}']) == (
        1,
        1,
    )
