"""The PASCAL VOC colour map."""


def voc_colours(count: int) -> list[tuple[int, int, int]]:
    """Gives colours to classes that have none of their own.

    Args:
        count: Number of colours, at most 256.

    Returns:
        Distinct RGB colours; the first is black.
    """
    colours = []
    for label in range(count):
        # Bits 3k, 3k + 1 and 3k + 2 of the label become bit 7 - k of red, green and blue.
        red, green, blue = (
            sum((label >> (3 * k + channel) & 1) << (7 - k) for k in range(3))
            for channel in range(3)
        )
        colours.append((red, green, blue))
    return colours
