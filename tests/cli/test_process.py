import logging
import os
import subprocess
import sys

from mmseg_cct.cli import process

NAME = """
import os, sys
from mmseg_cct.cli.process import restart_in_utf8
restart_in_utf8()
print(ascii(sys.argv[1]), sys.getfilesystemencoding())
"""


def test_a_locale_without_utf_8_misreads_no_name():
    variables = dict(LC_ALL='C', PYTHONUTF8='0', PYTHONCOERCECLOCALE='0')
    done = subprocess.run(
        [sys.executable, '-c', NAME, 'bäum'],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "'b\\xe4um' utf-8\n"


class FullDisk:
    def write(self, text):
        raise OSError(28, 'No space left on device')

    def flush(self):
        pass


def test_a_log_on_a_full_disk_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(logging.Handler, 'handleError', logging.Handler.handleError)
    process.report_log_errors_once()
    logger = logging.Logger('full')
    logger.addHandler(logging.StreamHandler(FullDisk()))
    for number in range(3):
        logger.warning('line %s', number)
    expected = 'warning: the log: No space left on device, so lines are missing there\n'
    assert capsys.readouterr().err == expected
    logger.warning('%s and %s', 'one')  # a bug keeps its traceback
    assert 'TypeError: not enough arguments' in capsys.readouterr().err
