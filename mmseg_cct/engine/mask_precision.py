"""How often masks of unknown quality are right, by class, on images whose true masks are known."""

import numpy as np


def mask_precision(
    area: np.ndarray, right: np.ndarray, z: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates the precision of each of C classes from n images.

    1. It is p = Σ_i r_i / Σ_i a_i: image i has a_i pixels that its mask gives to the class, of
       which r_i are right.
    2. The unit is the image, for pixels are wrong together, and large areas decide more: n images
       count as k = (Σ_i a_i)² / Σ_i a_i², Kish's effective number.
    3. The upper end of Wilson's interval of p from k trials is what p hardly exceeds.

    Args:
        area: a, `(n, C)` numbers of pixels.
        right: r, `(n, C)` of these.
        z: How far the upper end is from p, in standard deviations.

    Returns:
        p and its upper end, `(C,)` in [0, 1]; NaN where no mask shows the class.
    """
    area = area.astype(np.float64)
    with np.errstate(invalid='ignore'):
        p = right.sum(0) / area.sum(0)
        k = area.sum(0) ** 2 / np.square(area).sum(0)
        spread = np.sqrt(p * (1 - p) / k + np.square(z / k) / 4)
        return p, (p + z**2 / k / 2 + z * spread) / (1 + z**2 / k)
