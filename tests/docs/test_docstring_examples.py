import doctest
import importlib
from pathlib import Path

import pytest
import torch

PROJECT = Path(__file__).parents[2]
FILES = [
    file.relative_to(PROJECT)
    for file in sorted((PROJECT / 'mmseg_cct').rglob('*.py'))
    if '>>> ' in file.read_text(encoding='utf-8')
]


@pytest.mark.parametrize('file', FILES, ids=str)
def test_the_examples_hold(file):
    torch.manual_seed(0)
    module = importlib.import_module('.'.join(file.with_suffix('').parts))
    assert doctest.testmod(module).failed == 0
