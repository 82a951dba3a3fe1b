import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import tiny
import torch
from mmseg.registry import MODELS

from mmseg_cct.engine.hooks.compile_hook import CompileHook
from mmseg_cct.errors import UserError


def test_compiled_backbone_and_neck_train_the_same(cct, trained):
    """In a process of its own: this one has torch's compiler turned off."""
    cct.config.custom_hooks.append(dict(type='CompileHook', backend='aot_eager'))
    cct.write()
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONWARNINGS': 'ignore'}
    env.pop('TORCHDYNAMO_DISABLE', None)
    done = subprocess.run(
        [
            sys.executable,
            str(cct.tools / 'train.py'),
            str(cct.file),
            '--work-dir',
            'work',
            '--cfg-options',
            'default_hooks.checkpoint.interval=6',
        ],
        env={**env, 'PYTHONPATH': str(cct.tools.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for iteration, (line,) in cct.scalars(cct.folder / 'work').items():
        assert line['loss'] == pytest.approx(trained.logged[iteration][0]['loss'], rel=1e-4)
    compiled = cct.load(cct.folder / 'work/iter_6.pth')['state_dict']
    assert compiled.keys() == cct.load(trained.checkpoint)['state_dict'].keys()


def test_compile_hook_compiles_its_modules_in_place(monkeypatch):
    model = MODELS.build(tiny.model_config())
    names, seen = list(model.state_dict()), []
    monkeypatch.setattr(
        torch, 'compile', lambda call, **options: seen.append((call.__self__, options)) or call
    )
    CompileHook(['backbone', 'neck'], dynamic=True).before_train(SimpleNamespace(model=model))
    assert seen == [(model.backbone, dict(dynamic=True)), (model.neck, dict(dynamic=True))]
    compiled = [
        name for name, child in model.named_children() if child._compiled_call_impl is not None
    ]
    assert sorted(compiled) == ['backbone', 'neck']
    assert list(model.state_dict()) == names


def test_compile_hook_names_an_unknown_module(cct):
    cct.config.custom_hooks.append(dict(type='CompileHook', modules=['backbon']))
    cct.write()
    with pytest.raises(UserError, match=r"no module 'backbon'; expected names such as .*backbone"):
        cct.train(options={'train_cfg.max_iters': 2})
