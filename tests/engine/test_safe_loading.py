import collections
import io
import os
import pickle
import zipfile
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
from mmseg_cct.engine.checkpoints import read_checkpoint
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
        meta=dict(iter=3, cfg='a = 1', size=(1, 2), part=slice(1, 2), at=datetime(2026, 1, 2)),
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
    path, listed = save(good()), torch.serialization.get_safe_globals
    before = set(listed())
    loaded = load_data(path, 'x.pth')
    assert set(listed()) == before
    torch.serialization.add_safe_globals([HistoryBuffer])
    try:
        load_data(path, 'x.pth')
        assert HistoryBuffer in listed()
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(list(before))
    assert torch.equal(loaded['state_dict']['a'], torch.arange(3.0))
    hub = loaded['message_hub']
    assert hub['log_scalars']['loss'].mean() == 1.5
    assert hub['runtime_info'] == dict(lr=0.5, n=3, yes=True)
    assert hub['array'].tolist() == [0, 1, 2]
    assert loaded['meta'] == good()['meta']
    args = Namespace(lr=0.1, out=PurePosixPath('x/y'), names={'a'}, raw=b'\xff')
    assert loaded['args'] == args


def test_a_one_cycle_schedule_loads(save):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    state = OneCycleLR(optimizer, eta_max=1.0, total_steps=4).state_dict()
    assert callable(state['anneal_func'])  # a function, which is not data
    assert load_data(save(dict(param_schedulers=[state])), 'x.pth')['param_schedulers'] == [state]


def test_a_config_that_mmengine_would_run_is_left_out(save):
    meta = dict(cfg='a = 1', config='a = 1')
    assert load_data(save(dict(good(), meta=meta)), 'x.pth')['meta'] == dict(cfg='a = 1')


def test_a_file_for_torch_before_2_6_gives_types_no_attributes():
    state = pickle.dumps((None, dict(mark=1)), 2)[2:-1]  # attributes to be set
    pickled = io.BytesIO(b'\x80\x02cargparse\nNamespace\n' + state + b'b.')
    with pytest.raises(pickle.UnpicklingError, match='Unsupported: state of GLOBAL Namespace'):
        safe_loading._PICKLE.load(pickled)
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
    with pytest.raises(UserError, match=r'x.pth: refused: it names .*may run code; expected'):
        load_data(save(dict(good(), extra=[payload])), 'x.pth')


def nested(levels):
    value = (1, 2)
    for _ in range(levels):
        value = (value, value)
    return value


@pytest.fixture
def save_pickle(tmp_path):
    """Puts a pickle in a checkpoint's place, with no need to hash what it holds."""

    def write(pickled):
        path = tmp_path / 'x.pth'
        torch.save(1, path)
        with zipfile.ZipFile(path) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, 'w') as archive:
            for name, data in contents.items():
                archive.writestr(name, pickled if name.endswith('data.pkl') else data)
        return path

    return write


@pytest.mark.parametrize(
    ('before', 'after'),
    [(b'}', b'K\x01s'), (b'}(', b'K\x01u'), (b'c__builtin__\nset\n](', b'e\x85R')],
    ids=['key', 'keys', 'set'],
)
def test_hashing_cannot_take_for_ever(save_pickle, before, after):
    tuples = pickle.dumps(nested(60), protocol=2)[2:-1]
    with pytest.raises(UserError, match=r'x\.pth: refused: '):
        load_data(save_pickle(b'\x80\x02' + before + tuples + after + b'.'), 'x.pth')


def test_a_long_tuple_that_is_no_key_is_data(save_pickle):
    assert load_data(save_pickle(pickle.dumps(nested(3), protocol=2)), 'x.pth') == nested(3)


def test_entries_are_stored_as_they_are(tmp_path, save_pickle):
    stored = save_pickle(pickle.dumps(dict(a=1), protocol=2))
    path = tmp_path / 'deflated.pth'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as new, zipfile.ZipFile(stored) as old:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    with pytest.raises(UserError, match=r"data\.pkl' is compressed"):
        load_data(path, 'x.pth')


def test_tensors_have_no_attributes_and_names_are_printable(tmp_path):
    hiding = nn.Parameter(torch.zeros(1))
    hiding.numel = 5
    for content, named in (
        (dict(a=hiding), 'a has attributes'),
        ({'a\x1b[2J': 1}, r"'a\\x1b\[2J'"),
    ):
        torch.save(content, tmp_path / 'x.pth')
        with pytest.raises(UserError, match=named):
            load_data(tmp_path / 'x.pth', 'x.pth')


@pytest.mark.parametrize(
    'meta',
    [
        1,
        dict(classes='ab'),
        dict(classes=['a\x1b']),
        dict(palette=[[0, 0, 256]]),
        dict(domains=[1]),
    ],
)
def test_the_classes_of_a_checkpoint_are_names_and_colors(tmp_path, meta):
    path = str(tmp_path / 'x.pth')
    torch.save(dict(state_dict=dict(w=torch.ones(1)), meta=dict(dataset_meta=meta)), path)
    with pytest.raises(UserError, match=r'x\.pth: its meta\.dataset_meta'):
        read_checkpoint(path)


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
        with pytest.raises(UserError, match=r'refused: it names'):
            load_checkpoint(nn.Linear(1, 1), name, 'cpu')
    with pytest.raises(UserError, match=r'torchvision://b is not in .* zoo .*; expected a name'):
        CheckpointLoader.load_checkpoint('torchvision://b')


def test_a_changed_byte_of_the_weights_is_found(tmp_path):
    path = tmp_path / 'x.pth'
    torch.save(dict(state_dict=dict(a=torch.zeros(9))), path)
    path.write_bytes(path.read_bytes().replace(bytes(36), bytes(35) + b'1'))
    with pytest.raises(UserError, match=r'x\.pth: cannot be read \(damaged: its entry.* checksum'):
        load_data(path, 'x.pth')


def test_weights_are_finite(tmp_path):
    path = str(tmp_path / 'x.pth')
    content = dict(state_dict=dict(w=torch.ones(3), running_mean=torch.zeros(3)))
    content |= dict(meta={}, optimizer={}, message_hub={})
    torch.save(content, path)
    read_checkpoint(path)
    content['state_dict']['running_mean'][1] = torch.nan
    torch.save(content, path)
    read_checkpoint(path, training=True)
    with pytest.raises(UserError, match=r'1 of its weights are NaN or infinite, .* running_mean'):
        read_checkpoint(path)
    content['state_dict']['w'][2] = torch.inf
    torch.save(content, path)
    with pytest.raises(UserError, match=r'1 of its weights are NaN or infinite, the first is w;'):
        read_checkpoint(path, training=True)


TENSORS = {
    'sparse': torch.eye(2).to_sparse(),
    'without values': torch.empty(2, device='meta'),
    'expanded': torch.zeros(1).expand(2**43),
    'float8': torch.eye(2).to(torch.float8_e4m3fn),
}


@pytest.mark.parametrize('kind', TENSORS)
def test_a_tensor_that_nothing_can_use_is_named_at_every_door(kind, tmp_path):
    path = str(tmp_path / 'x.pth')
    torch.save(dict(state_dict=dict(weight=TENSORS[kind])), path)
    for read in (read_checkpoint, lambda file: load_checkpoint(nn.Linear(2, 2), file)):
        with pytest.raises(UserError, match=r'x\.pth: state_dict\.weight is '):
            read(path)


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
