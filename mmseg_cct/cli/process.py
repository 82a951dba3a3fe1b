"""Prepares a tool's process: file names in UTF-8, and one line if its log cannot be written."""

import logging
import os
import sys


def restart_in_utf8() -> None:
    """Starts the process again in Python's UTF-8 mode if its locale has another encoding.

    Otherwise names of files and classes would be misread, as under `LC_ALL=C PYTHONUTF8=0`.
    """
    if sys.getfilesystemencoding() != 'utf-8' and os.environ.get('PYTHONUTF8') != '1':
        os.environ['PYTHONUTF8'] = '1'
        os.execv(sys.executable, sys.orig_argv)


def report_log_errors_once() -> None:
    """Reports a log that cannot be written, as on a full disk, in one line, not in tracebacks."""
    logging.Handler.handleError = _report_once  # type: ignore[assignment,method-assign]


_handle_error = logging.Handler.handleError
_reported: set[logging.Handler] = set()


def _report_once(handler: logging.Handler, record: logging.LogRecord) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, OSError):  # a bug in a message
        _handle_error(handler, record)
    elif handler not in _reported:
        _reported.add(handler)
        place = getattr(handler, 'baseFilename', 'the log')
        print(f'warning: {place}: {error.strerror}, so lines are missing there', file=sys.stderr)
