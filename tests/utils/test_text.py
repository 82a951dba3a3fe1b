import pytest
from torch.utils.data import DataLoader

from mmseg_cct.errors import UserError
from mmseg_cct.utils.text import (
    close_names,
    error_line,
    library_errors_as_one_line,
    nearest,
    one_line,
)


def test_lines_become_one_which_is_cut_and_an_error_names_its_type():
    assert one_line(ValueError('a\n  b\tc ')) == 'a b c'
    assert one_line('abcdef', max_length=3) == 'abc ...'
    assert error_line(KeyError('a')) == "KeyError: 'a'"


def test_a_misspelt_name_gets_the_nearest_and_another_all():
    names = ('SpatialDropout', 'FeatureDrop', 'FeatureNoise')
    assert close_names('FeatureDrp', names)[0] == 'FeatureDrop'
    assert nearest('FeatureNoize', names) == 'did you mean FeatureNoise or FeatureDrop?'
    assert nearest('xyz', names) == 'one of SpatialDropout, FeatureDrop, FeatureNoise'


def as_one_line():
    return library_errors_as_one_line('model.neck', 'cannot be built', 'another')


@pytest.mark.parametrize('error', [KeyError('mine'), OSError('disk'), UserError('line')])
def test_other_errors_stay(error):
    with pytest.raises(type(error)) as caught, as_one_line():
        raise error
    assert caught.value is error


@pytest.mark.parametrize('workers', [0, 1])
def test_a_library_s_error_is_a_line_in_a_loading_worker_too(workers):
    batches = iter(DataLoader([object()] * 2, num_workers=workers))
    with pytest.raises(UserError) as caught, as_one_line():
        next(batches)
    if workers:
        batches._shutdown_workers()  # kept alive by the error, they are waited for 5 s
    (problem,) = caught.value.problems
    assert problem.key == 'model.neck' and 'TypeError: default_collate' in problem.found
    assert isinstance(caught.value.__cause__, TypeError)
