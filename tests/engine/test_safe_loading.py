import collections
import io
import os
import pickle
from argparse import Namespace
from datetime import datetime
from pathlib import PosixPath, PurePosixPath

import numpy as np
import pytest
import torch
from mmengine.logging import HistoryBuffer
from mmengine.optim.scheduler import OneCycleLR
from mmengine.runner import load_checkpoint
from mmengine.runner.checkpoint import CheckpointLoader
from torch import nn

from mmseg_cct.engine import safe_loading
from mmseg_cct.engine.safe_loading import load_data
from mmseg_cct.errors import UserError


class Reduced:
    """Pickles as a call of a function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def good():
    log = HistoryBuffer([1.0, 2.0], [1, 1])
    return dict(
        state_dict=collections.OrderedDict(a=torch.arange(3.0)),
        meta=dict(
            iter=3,
            cfg='a = 1',
            config='a = 1',
            size=(1, 2),
            part=slice(1, 2),
            at=datetime(2026, 1, 2),
        ),
        args=Namespace(lr=0.1, out=Reduced(PosixPath, 'x', 'y'), names={'a'}, raw=b'\xff'),
        message_hub=dict(
            log_scalars=collections.OrderedDict(loss=log),
            runtime_info=dict(lr=np.float32(0.5), n=np.int64(3), yes=np.bool_(True)),
            array=np.arange(3),
        ),
    )


@pytest.fixture(params=['zip', 'legacy', 'old torch'])
def save(request, tmp_path, monkeypatch):
    """Saves into a file of each of torch's formats; the last is read as by torch before 2.6."""
    if request.param == 'old torch':
        monkeypatch.setattr(safe_loading, '_TORCH_TAKES_NAMES', False)

    def write(content):
        path = tmp_path / 'x.pth'
        torch.save(content, path, _use_new_zipfile_serialization=request.param != 'legacy')
        return path

    return write


def test_what_a_training_saves_loads_and_the_list_of_the_process_stays(save):
    before = set(torch.serialization.get_safe_globals())
    loaded = load_data(save(good()), 'x.pth')
    assert set(torch.serialization.get_safe_globals()) == before
    assert torch.equal(loaded['state_dict']['a'], torch.arange(3.0))
    assert 'config' not in loaded['meta']  # which mmengine would run
    hub = loaded['message_hub']
    assert hub['log_scalars']['loss'].mean() == 1.5
    assert hub['runtime_info'] == dict(lr=0.5, n=3, yes=True)
    assert hub['array'].tolist() == [0, 1, 2]
    assert dict(loaded['meta'], config='a = 1') == good()['meta']
    args = Namespace(lr=0.1, out=PurePosixPath('x/y'), names={'a'}, raw=b'\xff')
    assert loaded['args'] == args


def test_a_one_cycle_schedule_loads(save):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    state = OneCycleLR(optimizer, eta_max=1.0, total_steps=4).state_dict()
    assert callable(state['anneal_func'])  # a function, which is not data
    assert load_data(save(dict(param_schedulers=[state])), 'x.pth')['param_schedulers'] == [state]


@pytest.mark.parametrize('takes_names', [True, False], ids=['torch', 'old torch'])
def test_a_type_cannot_be_changed(tmp_path, monkeypatch, takes_names):
    monkeypatch.setattr(safe_loading, '_TORCH_TAKES_NAMES', takes_names)
    state = pickle.dumps((None, dict(mark=1)), 2)[2:-1]  # attributes to be set
    (tmp_path / 'x.pth').write_bytes(b'\x80\x02cargparse\nNamespace\n' + state + b'b.')
    with pytest.raises(UserError, match=r'^x\.pth: refused'):
        load_data(tmp_path / 'x.pth', 'x.pth')
    assert not hasattr(Namespace, 'mark')


@pytest.mark.parametrize(
    'payload',
    [
        Reduced(os.system, 'true'),
        Reduced(getattr, dict, 'get'),
        Reduced(getattr, HistoryBuffer, '__init__'),
        Reduced(np.float64(0).__reduce__()[0], np.dtype('O'), 1),
        nn.Linear(1, 1),
    ],
    ids=['system', 'getattr', 'method', 'object', 'module'],
)
def test_more_than_data_is_refused(save, payload):
    with pytest.raises(UserError, match=r'^x\.pth: refused'):
        load_data(save(dict(good(), extra=[payload])), 'x.pth')


def test_every_scheme_loads_data_alone(tmp_path, monkeypatch):
    loaders = CheckpointLoader._schemes
    assert {loader.__module__ for loader in loaders.values()} == {safe_loading.__name__}
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))
    file = tmp_path / 'checkpoints/resnet50-0676ba61.pth'
    file.parent.mkdir()
    torch.save([Reduced(os.system, 'true')], file)
    url = f'https://x.org/{file.name}'
    monkeypatch.setitem(safe_loading._ZOOS, 'torchvision', lambda: dict(a=url))
    for name in (url, 'torchvision://a', str(file)):
        with pytest.raises(UserError, match='refused'):
            load_checkpoint(nn.Linear(1, 1), name, 'cpu')
    with pytest.raises(UserError, match='torchvision://b'):
        CheckpointLoader.load_checkpoint('torchvision://b')


def test_every_machine_downloads_once_and_all_end_if_one_cannot(tmp_path, monkeypatch):
    """Of two processes; the other's failure comes from `all_gather_object`."""
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))
    fetched, failures, file = [], [], tmp_path / 'checkpoints/x.pth'
    file.parent.mkdir()

    def fetch(url, path):
        fetched.append(url)
        torch.save(dict(w=torch.ones(1)), path)

    monkeypatch.setattr(torch.hub, 'download_url_to_file', fetch)
    monkeypatch.setattr(safe_loading, 'urlopen', lambda *_, **__: io.BytesIO())
    monkeypatch.setattr(safe_loading, 'all_gather_object', lambda mine: [mine, *failures])
    for local_rank in ('0', '1'):  # of rank 8 and 9, say
        monkeypatch.setenv('LOCAL_RANK', local_rank)
        assert safe_loading.load_from_http('https://x.org/x.pth').keys() == {'w'}
    assert len(fetched) == 1
    failures.append('x: could not be downloaded')
    with pytest.raises(UserError, match='could not be downloaded'):
        safe_loading.load_from_http('https://x.org/x.pth')
