import argparse
import gc

import pytest
from mmengine.visualization import Visualizer
from mmseg.engine.hooks import SegVisualizationHook
from PIL import EpsImagePlugin, Image

from mmseg_cct.cli.start import running


def start(**arguments):
    args = argparse.Namespace(**arguments)
    with running(args):
        pass
    return args


def test_settings_have_values():
    texts = ['a.b=1', 'c=[1,(2,x)]', 'd=true', 'e=None', 'f=x=y', 'g=0.5', 'a.b=2']
    expected = {'a.b': 2, 'c': [1, (2, 'x')], 'd': True, 'e': None, 'f': 'x=y', 'g': 0.5}
    assert start(options=texts).options == expected
    assert start(options=[]).options == {}


@pytest.mark.parametrize('text', ['a=[dict(b=1,c=2)]', 'a=[1,(2', 'a'])
def test_a_setting_that_cannot_be_read_is_one_line(text, capsys):
    with pytest.raises(SystemExit):
        start(options=['b=1', text])
    line = f'error: --cfg-options {text}: expected a value or a list; a dict key by key\n'
    assert capsys.readouterr().err == line


def test_a_tool_starts_no_program_and_says_nothing_that_misleads(recwarn):
    gc.collect()  # what earlier tests left open
    recwarn.clear()
    start()
    assert EpsImagePlugin.gs_binary is False  # Ghostscript, for a PostScript image
    assert Image.MAX_IMAGE_PIXELS == 2**29
    Visualizer.get_instance('start')
    SegVisualizationHook()  # its draw is False
    assert not [str(warning.message) for warning in recwarn]
