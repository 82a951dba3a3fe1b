"""Text for messages, reports and tables."""


def one_line(text: object, max_length: int | None = None) -> str:
    """Joins the lines of a text, such as an error's message, by single spaces.

    Args:
        text: An object whose `str` is the text.
        max_length: Characters to keep; what is cut off becomes `...`.

    Returns:
        The line.
    """
    line = ' '.join(str(text).split())
    if max_length is not None and len(line) > max_length:
        line = f'{line[:max_length]} ...'
    return line


def error_line(error: BaseException, max_length: int | None = None) -> str:
    """Gives an error in one line, its type first.

    Args:
        error: The error.
        max_length: Characters to keep.

    Returns:
        `Type: message`.
    """
    return one_line(f'{type(error).__name__}: {error}', max_length)


def signed(points: float) -> str:
    """Writes a difference in points, to one digit; what rounds to nothing has no minus."""
    return f'{round(points, 1) + 0.0:+.1f}'
