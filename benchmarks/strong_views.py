"""Measures the CPU time of a strong view in one worker, by the library that makes it.

Compares `StrongViews` (mmcv and OpenCV) with the same operations, probabilities and ranges from
torchvision, on tensors and on PIL images, and from kornia. Libraries that are not installed are
left out. They take turns; times are medians of the CPU time, which other jobs disturb least.
Every reading makes the same number of views, under the same seed of torch.

Example:
    python benchmarks/strong_views.py
"""

from collections.abc import Callable
from importlib.util import find_spec

import cv2
import numpy as np
import torch
from _measure import alternate, begin, benchmark_parser, save, say_table, seconds
from data_loading import picture
from mmseg.structures import SegDataSample
from PIL import Image, ImageFilter
from torch import Tensor

from mmseg_cct.datasets import StrongViews
from mmseg_cct.utils.seed import seeded_random_state

SIGMA = (0.1, 2.0)


def candidates(image: np.ndarray) -> dict[str, Callable[[], Tensor]]:
    """Ways to make a strong view of an image `(H, W, 3)` uint8, from and to a packed tensor."""
    packed = torch.from_numpy(image.transpose(2, 0, 1).copy())
    ours = StrongViews()

    def strong_views() -> Tensor:
        return ours(dict(inputs=packed, data_samples=SegDataSample()))['strong_views'][0]

    found: dict[str, Callable[[], Tensor]] = {'`StrongViews` (mmcv, OpenCV)': strong_views}
    if find_spec('torchvision'):
        from torchvision.transforms import v2

        colours = v2.Compose(
            [v2.RandomApply([v2.ColorJitter(0.5, 0.5, 0.5, 0.25)], 0.8), v2.RandomGrayscale(0.2)]
        )
        blur = v2.RandomApply([v2.GaussianBlur(13, SIGMA)], 0.5)

        def on_pil() -> Tensor:
            view = colours(Image.fromarray(packed.numpy().transpose(1, 2, 0)))
            if torch.rand(()) < 0.5:
                sigma = torch.empty(()).uniform_(*SIGMA).item()
                view = view.filter(ImageFilter.GaussianBlur(sigma))
            return torch.from_numpy(np.array(view).transpose(2, 0, 1)).contiguous()

        found['torchvision on PIL images, as in UniMatch'] = on_pil
        found['torchvision v2 on uint8 tensors'] = lambda: blur(colours(packed))
    if find_spec('kornia'):
        import kornia.augmentation as kornia

        augment = torch.nn.Sequential(
            kornia.ColorJitter(0.5, 0.5, 0.5, 0.25, p=0.8),
            kornia.RandomGrayscale(p=0.2),
            kornia.RandomGaussianBlur((13, 13), SIGMA, p=0.5),
        )
        found['kornia on float tensors'] = lambda: (
            augment(packed[None].float() / 255)[0].mul(255).to(torch.uint8)
        )
    return found


def many(view: Callable[[], Tensor], count: int) -> Callable[[], None]:
    """Makes a step of `count` views under one seed."""

    def make_all() -> None:
        with seeded_random_state(0):
            for _ in range(count):
                view()

    return make_all


def main() -> None:
    """Prints a table of CPU milliseconds per view."""
    parser = benchmark_parser(__doc__, repeats=5)
    parser.add_argument('--sizes', nargs='+', default=['320x320', '512x1024'], metavar='HxW')
    parser.add_argument('--views', type=int, default=100, help='views per reading')
    options = parser.parse_args()
    results = begin(options)
    cv2.setNumThreads(1)
    times: dict[str, dict[str, float]] = {}
    for size in options.sizes:
        image = picture(*map(int, size.split('x')), seed=0)
        steps = {name: many(view, options.views) for name, view in candidates(image).items()}
        for name, taken in alternate(steps, options.repeats, 'cpu', warm_up=0).items():
            times.setdefault(name, {})[size] = taken['cpu'] / options.views
    say_table(
        'Strong views',
        [
            [('a view', name), *((size, seconds(value)) for size, value in by_size.items())]
            for name, by_size in times.items()
        ],
    )
    save(options, results | dict(views=times))


if __name__ == '__main__':
    main()
