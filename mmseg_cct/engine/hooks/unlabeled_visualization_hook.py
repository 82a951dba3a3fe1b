"""Visualizes main and auxiliary predictions on unlabelled images."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import mmcv
import numpy as np
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from mmengine.dataset import pseudo_collate
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from mmengine.runner import Runner

from mmseg_cct.datasets.files.images import as_rgb
from mmseg_cct.datasets.samplers import PairDraw
from mmseg_cct.datasets.semi_supervised import SemiSegDataset
from mmseg_cct.engine.models import eval_sandbox, unwrap_model
from mmseg_cct.engine.visualization.figures import outer_legend, png_bytes
from mmseg_cct.engine.visualization.label_maps import class_legend, paint
from mmseg_cct.errors import UserError
from mmseg_cct.models import PerturbedDecoderBank
from mmseg_cct.utils.ranges import at_least, ranges

TILES_PER_ROW = 5
TILE_WIDTH, CAPTION_HEIGHT = 2.4, 0.25  # inches, 100 pixels each


@HOOKS.register_module()
class UnlabeledVisualizationHook(Hook):
    """Draws main and auxiliary predictions and their disagreement on fixed unlabelled images.

    A picture shows the image, the main prediction, the share of auxiliary decoders that disagree
    with it at each pixel (black none, light yellow all), and the prediction of the first decoder of
    every perturbation. Percentages are shares of the pixels on which those decoders differ from the
    main one. Images, their augmentation and the perturbations are drawn once for all pictures,
    so only the weights change. The runner's visualizer writes the pictures below `vis_data`, and to
    TensorBoard if it is set up. Only rank 0 draws, and training and random states do not change.

    Args:
        interval: Iterations between two pictures; the last iteration is drawn too.
        num_images: Number of images, evenly spaced over the unlabelled set.
        seed: Seed of the augmentation and the perturbations.
    """

    priority = 'LOW'

    @ranges(interval=at_least(1), num_images=at_least(1))
    def __init__(self, interval: int = 500, num_images: int = 2, seed: int = 0) -> None:
        self.interval = interval
        self.num_images = num_images
        self.seed = seed
        self.items: list[dict] = []
        self.meta: dict[str, Any] = {}

    def before_train(self, runner: Runner) -> None:
        """Loads the images; there must be some, and auxiliary decoders."""
        bank = getattr(unwrap_model(runner.model), 'auxiliary_head', None)
        dataset = runner.train_dataloader.dataset
        is_pairs = isinstance(dataset, SemiSegDataset) and dataset.unlabeled is not None
        if not (isinstance(bank, PerturbedDecoderBank) and is_pairs):
            found = 'no auxiliary decoders or no unlabelled images'
            expected = 'a model with a PerturbedDecoderBank and a SemiSegDataset of both'
            raise UserError('UnlabeledVisualizationHook', found, expected)
        if not is_main_process():
            return
        self.meta = dataset.metainfo
        count = len(dataset.unlabeled)
        chosen = np.linspace(0, count - 1, min(self.num_images, count)).round().astype(int)
        for index in chosen.tolist():
            pair = dataset[PairDraw(0, index, labeled_seed=0, unlabeled_seed=self.seed)]
            self.items.append({key: branches['unlabeled'] for key, branches in pair.items()})

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        """Draws the pictures at the interval."""
        due = self.every_n_train_iters(runner, self.interval) or self.is_last_train_iter(runner)
        if not due or not is_main_process():
            return
        model = unwrap_model(runner.model)
        with eval_sandbox(model, self.seed):
            for index, item in enumerate(self.items):
                classes, palette = self.meta['classes'], self.meta['palette']
                picture = draw_predictions(*predict(model, item), classes, palette)
                runner.visualizer.add_image(f'unlabeled_{index}.png', picture, runner.iter + 1)


def predict(model: Any, item: dict) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Segments one image with the main and all auxiliary decoders of a `CCTSegmentor`.

    `item` is the output of the unlabelled pipeline. Returns the image `(H, W, 3)` in RGB, the main
    decoder's class ids `(H, W)`, and for each perturbation those of its decoders, `(k, H, W)`.
    """
    data = model.data_preprocessor(pseudo_collate([item]), training=False)
    features = model.extract_feat(data['inputs'])
    bank = model.auxiliary_head
    z, seg_logits = model.features_of_bank(features), model.predict_unlabeled(features)
    auxiliary = bank(z, seg_logits, data['data_samples']).argmax(2)[:, 0]
    main = F.interpolate(seg_logits, auxiliary.shape[-2:], mode='bilinear').argmax(1)[0]

    image = as_rgb(item['inputs'].numpy().transpose(1, 2, 0))
    height, width = image.shape[:2]  # without the padding at the right and the bottom
    by_decoder = auxiliary[:, :height, :width].cpu().numpy()
    parts = {name: by_decoder[chosen] for name, chosen in bank.slices.items()}
    return image, main[:height, :width].cpu().numpy(), parts


def draw_predictions(
    image: np.ndarray,
    main: np.ndarray,
    auxiliary: Mapping[str, np.ndarray],
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
) -> np.ndarray:
    """Puts image, predictions and disagreement side by side, above a legend of the classes.

    Images are `(H, W, 3)` uint8, RGB; class ids are `(H, W)`, and `(k, H, W)` for a perturbation.
    """
    differs = np.concatenate([ids != main for ids in auxiliary.values()])
    heat = matplotlib.colormaps['inferno'](differs.mean(0))[..., :3]
    tiles = [
        ('image', image),
        ('main decoder', paint(main, palette)),
        (f'disagreement, {differs.mean():.0%} of all', heat),
    ]
    for name, ids in auxiliary.items():
        tiles.append((f'{name}, {(ids != main).mean():.0%} differ', paint(ids[0], palette)))

    rows = -(-len(tiles) // TILES_PER_ROW)
    height = TILE_WIDTH * image.shape[0] / image.shape[1] + CAPTION_HEIGHT
    figure = Figure(
        figsize=(TILE_WIDTH * TILES_PER_ROW, height * rows),
        layout=ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0, hspace=0),
    )
    figure.subplots(rows, TILES_PER_ROW)
    for axes in figure.axes:
        axes.set_axis_off()
    for axes, (caption, pixels) in zip(figure.axes, tiles):
        axes.imshow(pixels, interpolation='nearest')
        axes.set_title(caption, fontsize=8, loc='left', pad=3)
    outer_legend(figure, class_legend(classes, palette))
    return mmcv.imfrombytes(png_bytes(figure), channel_order='rgb')
