"""A checkpoint with a tensor or a part that nothing can use is one line that names it."""

import re

import numpy as np
import pytest
import torch
from mmengine.runner import load_checkpoint
from torch import nn

from mmseg_cct.engine.checkpoints import read_checkpoint
from mmseg_cct.errors import UserError


def training():
    """The content of a training's checkpoint."""
    meta = dict(classes=('a', 'b'), palette=[[0, 0, 0], [1, 2, 3]])
    return dict(
        state_dict=dict(weight=torch.eye(2)),
        meta=dict(iter=2, epoch=0, seed=3, dataset_meta=dict(meta, domains={'x.y': meta})),
        optimizer=dict(
            state={0: dict(momentum_buffer=torch.ones(2))},
            param_groups=[dict(lr=0.1, params=[0])],
        ),
        param_schedulers=[dict(last_step=2, _global_step=3)],
        message_hub=dict(
            log_scalars={},
            runtime_info=dict(best_score=np.float64(0.5), best_ckpt='x.pth', keep_ckpt_ids=[2]),
            resumed_keys={},
        ),
    )


def changed(key, value):
    content = training()
    *path, last = key.split('/')
    part = content
    for name in path:
        part = part[name]
    part[last] = value
    return content


def holds_itself():
    content = training()
    content['meta']['more'] = [content['meta']]
    return content


@pytest.mark.parametrize(
    'content',
    [
        training(),
        holds_itself(),
        dict(weight=torch.eye(2)),
        changed('meta', None),
        changed('meta/dataset_meta', None),
        changed('meta/dataset_meta/palette', None),
        changed('meta/dataset_meta/palette', np.zeros((2, 3), np.uint8)),
        changed('meta/dataset_meta/classes', []),
        changed('state_dict/weight', torch.eye(3)[:, 1:].T),
        changed('param_schedulers', dict(adam=[dict(last_step=1)])),
    ],
)
def test_what_can_be_read_is(content, tmp_path):
    torch.save(content, tmp_path / 'x.pth')
    state = content.get('state_dict', content)
    read = read_checkpoint(str(tmp_path / 'x.pth'), training='meta' in content)
    assert torch.equal(read['state_dict']['weight'], state['weight'])


TENSORS = {
    'sparse': (lambda: torch.eye(2).to_sparse(), 'layout torch.sparse_coo'),
    'csr': (lambda: torch.eye(2).to_sparse_csr(), 'layout torch.sparse_csr'),
    'meta': (lambda: torch.empty(2, device='meta'), 'meta tensor'),
    'expanded': (lambda: torch.zeros(1).expand(2**43), '8796093022208 elements'),
    'quantized': (
        lambda: torch.quantize_per_tensor(torch.eye(2), 0.1, 0, torch.qint8),
        'torch.qint8',
    ),
}


@pytest.mark.parametrize('place', ['state_dict/weight', 'meta/more', 'optimizer/more'])
@pytest.mark.parametrize('kind', TENSORS)
@pytest.mark.filterwarnings('ignore:Sparse CSR')
def test_tensors_that_are_not_dense_are_refused_at_every_door(kind, place, tmp_path):
    make, found = TENSORS[kind]
    path = str(tmp_path / 'x.pth')
    torch.save(changed(place, make()), path)
    line = rf'x\.pth: {place.replace("/", ".")} is a .*{found}.*; expected dense tensors'
    for read in (read_checkpoint, lambda file: load_checkpoint(nn.Linear(2, 2), file)):
        with pytest.raises(UserError, match=line):
            read(path)


OTHERS = [5, 'text', ['x'], [[1]], {1: 2}, dict(a=5), torch.ones(2), -1, 1.5, True, 2**70]
# The values among these that each part may have.
PARTS = {
    'state_dict': [],
    'meta': [],
    'meta/iter': [5],
    'meta/epoch': [5],
    'meta/dataset_meta': [dict(a=5)],
    'meta/dataset_meta/domains': [],
    'meta/dataset_meta/domains/x.y': [dict(a=5)],
    'meta/dataset_meta/classes': [['x']],
    'meta/dataset_meta/palette': [],
    'meta/dataset_meta/domains/x.y/palette': [],
}
PARTS_OF_A_TRAINING = {
    'meta/seed': [5],
    'optimizer': [dict(a=5)],
    'optimizer/state': [],
    'optimizer/param_groups': [],
    'optimizer/base_param_settings': [dict(a=5)],
    'param_schedulers': [],
    'message_hub': [],
    'message_hub/log_scalars': [dict(a=5)],
    'message_hub/runtime_info': [dict(a=5)],
    'message_hub/runtime_info/keep_ckpt_ids': [],
    'message_hub/runtime_info/best_score': [5, -1, 1.5, True, 2**70],
    'message_hub/runtime_info/best_ckpt': ['text'],
    'message_hub/resumed_keys': [dict(a=5)],
}


@pytest.mark.parametrize('value', OTHERS, ids=str)
@pytest.mark.parametrize('key', [*PARTS, *PARTS_OF_A_TRAINING])
def test_another_type_is_one_line(key, value, tmp_path):
    content = changed(key, value)
    path = str(tmp_path / 'x.pth')
    torch.save(content, path)
    allowed = {**PARTS, **PARTS_OF_A_TRAINING}[key]
    if any(value is other or (type(value) is type(other) and value == other) for other in allowed):
        read_checkpoint(path, training=True)
        return
    with pytest.raises(UserError, match=r'x\.pth: (its|holds no weights)') as error:
        read_checkpoint(path, training=True)
    assert len(str(error.value).splitlines()) == 1
    if key in PARTS_OF_A_TRAINING:  # weights alone are taken from it
        read_checkpoint(path)


@pytest.mark.parametrize('key', ['meta/iter', 'meta/epoch', 'message_hub/runtime_info'])
def test_what_a_resume_needs_is_named(key, tmp_path):
    content = training()
    parent, name = key.split('/')
    del content[parent][name]
    torch.save(content, tmp_path / 'x.pth')
    line = re.escape(f'x.pth: its {parent} is of type dict; expected {name} in it')
    with pytest.raises(UserError, match=line):
        read_checkpoint(str(tmp_path / 'x.pth'), training=True)


@pytest.mark.parametrize(
    'content',
    [
        {**training(), 3: 4},
        {0: torch.ones(2)},
        changed('state_dict', {1: torch.ones(2), 'weight': torch.ones(2)}),
    ],
)
def test_keys_that_are_no_text_are_refused(content, tmp_path):
    torch.save(content, tmp_path / 'x.pth')
    with pytest.raises(UserError, match=r'x\.pth: its .* expected a dict with text as keys'):
        read_checkpoint(str(tmp_path / 'x.pth'))
