"""Whose exception it is decides whether its traceback is shown."""

import json
import sysconfig
import types
from collections import defaultdict

import pytest
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmseg.registry import MODELS
from torch.utils.data import DataLoader

from mmseg_cct.cli.errors import user_errors_as_one_line
from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils import library_errors
from mmseg_cct.utils.library_errors import library_errors_as_one_line, library_place, original_error


class FailsInLibrary:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return json.loads('{')


class FailsItself(FailsInLibrary):
    def __getitem__(self, index):
        raise KeyError('mine')


def one_line():
    return library_errors_as_one_line('model.neck', 'cannot be built', 'another')


def test_a_library_s_error_is_a_line():
    with pytest.raises(UserError) as caught, one_line():
        json.loads('{')
    assert str(caught.value).startswith('model.neck: cannot be built (JSONDecodeError: Expecting')
    assert 'json/decoder.py:' in str(caught.value)
    assert str(caught.value).endswith(
        'expected another (MMSEG_CCT_TRACEBACK=1 shows the traceback)'
    )


def test_transformers_that_mmpretrain_does_not_import_are_named():
    with pytest.raises(UserError, match=r"imports: pip install 'transformers<5'"), one_line():
        types.new_class('BertPreTrainedModel', (None,))  # it is None there


@pytest.mark.parametrize('error', [KeyError('mine'), OSError('disk'), UserError('line')])
def test_other_errors_stay(error):
    with pytest.raises(type(error)) as caught, one_line():
        raise error
    assert caught.value is error
    with pytest.raises(AttributeError) as caught, one_line():  # of this package
        find_images('.', suffix=3)
    assert library_place(caught.value) is None


def test_openmmlab_s_libraries_may_be_installed_from_a_clone(monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, 'get_paths', lambda: defaultdict(lambda: str(tmp_path)))
    library_errors._libraries.cache_clear()
    try:
        with pytest.raises(UserError, match=r'KeyError.* in mmengine/registry'), one_line():
            MODELS.build(dict(type='Unheard'))
    finally:
        library_errors._libraries.cache_clear()


@pytest.mark.parametrize('workers', [0, 1])
def test_errors_of_loaders(workers):
    expected = r'\(\w*Error: .*Expecting .* in .*json/decoder.py:\d+\)'
    with pytest.raises(UserError, match=expected), one_line():
        list(DataLoader(FailsInLibrary(), num_workers=workers))
    with pytest.raises(KeyError, match='mine'), one_line():
        list(DataLoader(FailsItself(), num_workers=workers))


def test_mmengine_s_wording_is_undone():
    class Fails(Hook):
        def before_run(self, runner):
            raise TypeError('mine')

    runner = Runner.__new__(Runner)
    runner._hooks = [Fails()]
    with pytest.raises(TypeError, match='mine in <') as caught, one_line():
        runner.call_hook('before_run')
    assert str(original_error(caught.value)) == 'mine'


def test_tools_show_the_traceback_on_demand(monkeypatch, capsys):
    with pytest.raises(SystemExit), user_errors_as_one_line(), one_line():
        json.loads('{')
    assert capsys.readouterr().err.startswith('error: model.neck')
    monkeypatch.setenv('MMSEG_CCT_TRACEBACK', '1')
    with pytest.raises(UserError) as caught, user_errors_as_one_line(), one_line():
        json.loads('{')
    assert isinstance(caught.value.__cause__, json.JSONDecodeError)
