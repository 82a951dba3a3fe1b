"""Labels of masks."""

BACKGROUND = 'background'

# Ignored pixels, in every mask and at every step after the masks are loaded.
IGNORE_INDEX = 255


def is_background(name: str) -> bool:
    """Whether a class is the background, such as `background` or labelme's `_background_`."""
    return name.strip('_ ').lower() == BACKGROUND
