"""The exception for a mistake in a config or in data."""

# Set to anything, it makes tools show the traceback behind a line.
TRACEBACK_VARIABLE = 'MMSEG_CCT_TRACEBACK'


class UserError(ValueError):
    """A mistake in a config or in data that the user can mend.

    The message is one line: it names the file or key, the value found there and what was expected.

    Args:
        message: The line.
    """

    def __init__(self, message: str) -> None:
        # A DataLoader re-raises a worker's error with the worker's whole traceback as its message,
        # whose end is this class's name and the line itself.
        super().__init__(message.rsplit(f'{type(self).__name__}: ', 1)[-1].strip())
