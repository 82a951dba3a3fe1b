"""Builds a validation or test set and checks its files."""

import copy
from typing import Any

from mmseg.registry import DATASETS

from mmseg_cct.datasets.failures import explain_failed_build, name_images_in_errors
from mmseg_cct.errors import UserError
from mmseg_cct.utils.library_errors import library_place
from mmseg_cct.utils.text import one_line

from .files import look_at_evaluation_data


def build_evaluation_set(settings: Any, key: str) -> Any:
    """Builds a set and validates its files, as is done before training and testing.

    Its pipeline names the image that it fails on. `key` is the set's place in the config.

    Raises:
        UserError: There is no set, it cannot be built, or a file is bad.
    """
    if settings is None:
        raise UserError(key, 'missing', 'a labelled data set')
    try:
        dataset = DATASETS.build(copy.deepcopy(settings))
        dataset.full_init()
    except UserError as error:
        raise error.within(key) from None
    except Exception as error:
        is_refusal = isinstance(error, (AssertionError, OSError, ValueError))
        if not is_refusal and library_place(error) is None:  # a bug
            raise
        explain_failed_build(settings, key)
        raise UserError(key, one_line(error), 'a data set there') from error
    look_at_evaluation_data(dataset, key)
    name_images_in_errors(dataset, key)
    return dataset
