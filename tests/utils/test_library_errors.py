"""Whose exception it is decides whether its traceback is shown."""

import pytest
from torch.utils.data import DataLoader

from mmseg_cct.datasets.files.image_files import find_images
from mmseg_cct.errors import UserError
from mmseg_cct.utils.library_errors import library_errors_as_one_line


class FailsItself:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        raise KeyError('mine')


def one_line():
    return library_errors_as_one_line('model.neck', 'cannot be built', 'another')


@pytest.mark.parametrize('workers', [0, 1])
def test_a_library_s_error_is_a_line_in_a_loading_worker_too(workers):
    with pytest.raises(UserError) as caught, one_line():
        list(DataLoader([object()] * 2, num_workers=workers))
    (problem,) = caught.value.problems
    assert problem.key == 'model.neck' and 'TypeError: default_collate' in problem.found
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize(
    'error', [KeyError('mine'), OSError('disk'), UserError('line'), MemoryError()]
)
def test_other_errors_stay(error):
    with pytest.raises(type(error)) as caught, one_line():
        raise error
    assert caught.value is error
    with pytest.raises(AttributeError), one_line():  # of this package
        find_images('.', suffix=3)
    with pytest.raises(KeyError, match='mine'), one_line():
        list(DataLoader(FailsItself(), num_workers=1))
