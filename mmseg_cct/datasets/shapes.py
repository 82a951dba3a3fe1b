"""A data set of procedurally drawn scenes, which needs no download."""

from collections.abc import Callable, Sequence

from mmseg.datasets import BaseSegDataset
from mmseg.registry import DATASETS

from mmseg_cct.utils.ranges import at_least, ranges


@DATASETS.register_module()
class ShapesDataset(BaseSegDataset):
    """Scenes drawn by number, without any file.

    A scene is a pure function of seed, number and size, so sets of disjoint numbers are disjoint.
    The pipeline begins with `DrawShapesScene`.

    Args:
        start: Number of the first scene.
        count: Number of scenes.
        seed: Seed of all scenes.
        size: Side of the scenes in pixels.
        pipeline: Transforms, the first one `DrawShapesScene`.
        indices: Which scenes to take: the first n, or those listed; `None` takes all.
        test_mode: Whether the set serves evaluation.
        lazy_init: Whether to list the scenes only on first use.
    """

    METAINFO = dict(
        classes=('background', 'disc', 'box', 'triangle', 'star', 'cross', 'ring'),
        palette=[
            [0, 0, 0], [225, 70, 60], [235, 215, 70], [80, 190, 90], [70, 205, 220], [70, 90, 220],
            [215, 80, 215],
        ],
    )  # fmt: skip

    @ranges(start=at_least(0), count=at_least(1), seed=at_least(0), size=at_least(32))
    def __init__(
        self,
        start: int,
        count: int,
        seed: int = 0,
        size: int = 64,
        pipeline: Sequence[dict | Callable] = (),
        indices: int | Sequence[int] | None = None,
        test_mode: bool = False,
        lazy_init: bool = False,
    ) -> None:
        self.start, self.count, self.seed, self.size = start, count, seed, size
        super().__init__(
            pipeline=list(pipeline), indices=indices, test_mode=test_mode, lazy_init=lazy_init
        )

    def load_data_list(self) -> list[dict]:
        """Lists the scenes; their data infos name no file."""
        return [
            dict(scene=(self.seed, number, self.size), seg_fields=[], reduce_zero_label=False)
            for number in range(self.start, self.start + self.count)
        ]
