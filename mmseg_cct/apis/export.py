"""Export of the main path to ONNX."""

import copy
import functools
import importlib.util
import io
import json
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.utils import digit_version
from mmseg.models.backbones.swin import ShiftWindowMSA
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic

INPUT, OUTPUT = 'images', 'seg_logits'
# Maximum difference from PyTorch by rounding, as a share of the largest logit.
TOLERANCE = 1e-3


class InferenceGraph(nn.Module):
    """Copy of a segmentor with its normalisation and padding, from decoded images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
        preprocessor = self.model.data_preprocessor
        self.divisor = (preprocessor.test_cfg or {}).get('size_divisor') or 1
        self.padding = float(preprocessor.pad_val)
        self.channels = input_channels(self.model)
        weight, bias = _normalisation(preprocessor, self.channels)
        self.register_buffer('weight', weight)
        self.register_buffer('bias', bias)
        for module in self.model.modules():
            if isinstance(module, ShiftWindowMSA):  # tracing would freeze the batch size
                module.window_reverse = functools.partial(_merge_windows, module.window_size)
            for name, child in module.named_children():
                if isinstance(child, nn.AdaptiveAvgPool2d) and child.output_size not in (1, (1, 1)):
                    setattr(module, name, AveragePool(child.output_size))
        self.eval()  # the exporter restores this mode in all submodules

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `(N, 3, H, W)`, RGB in [0, 255], float32, to seg_logits `(N, C, H, W)`.

        For a model with other channels (`LoadChannels`), they come in the order of its config.

        For a binary model with one output, C is 2 and the first channel holds the threshold, so the
        class is the arg-max here too.
        """
        height, width = images.shape[2:]
        missing = (0, -width % self.divisor, 0, -height % self.divisor)
        inputs = F.pad(F.conv2d(images, self.weight, self.bias), missing, value=self.padding)
        logits = self.model.encode_decode(inputs, [dict(img_shape=inputs.shape[2:])])
        logits = logits[:, :, :height, :width]
        if logits.shape[1] == 1:
            threshold = float(torch.tensor(self.model.decode_head.threshold).logit())
            logits = torch.cat([torch.full_like(logits, threshold), logits], dim=1)
        return logits


def _merge_windows(side: int, windows: Tensor, height: int, width: int) -> Tensor:
    """Merges windows `(N · H/s · W/s, s, s, D)` to `(N, H, W, D)`."""
    rows = windows.view(-1, height // side, width // side, side, side, windows.shape[-1])
    return rows.transpose(2, 3).reshape(-1, height, width, windows.shape[-1])


class AveragePool(nn.Module):
    """`nn.AdaptiveAvgPool2d`, which ONNX lacks, as a matrix product along each axis."""

    def __init__(self, output_size: int | tuple[int, int]) -> None:
        super().__init__()
        self.bins = output_size if isinstance(output_size, tuple) else (output_size, output_size)

    def forward(self, features: Tensor) -> Tensor:
        """Averages `(N, D, h, w)` over the bins."""
        rows, columns = map(_bin_averages, features.shape[2:], self.bins)
        return rows @ features @ columns.T


@dataclass
class Export:
    """Exported file, compared with PyTorch."""

    file: Path
    size: tuple[int, int] | None  # height and width of its images; None if they are free
    # largest difference from PyTorch's logits over the largest logit; None without onnxruntime
    difference: float | None


def export_onnx(model: nn.Module, file: str | Path, size: tuple[int, int] | None = None) -> Export:
    """Exports to ONNX: input `images`, output `seg_logits`, dynamic batch size.

    Height and width are `size`, to which images are resized. Without it they are free if the graph
    computes the same as PyTorch at two sizes, which onnxruntime tells; else they are those of the
    test pipeline. The file carries `metadata`.

    Raises:
        UserError: If the package onnx is missing.
    """
    if importlib.util.find_spec('onnx') is None:
        raise UserError('--onnx', 'no package onnx', "it: pip install 'mmseg_cct[export]'")
    graph, usual = InferenceGraph(model), size or size_in_tests(model)
    checkable = importlib.util.find_spec('onnxruntime') is not None
    if size is None and checkable:
        smaller = tuple(-(-side * 3 // 4) for side in usual)
        with suppress(Exception):  # the exporter has no error of its own; the size is fixed then
            data = _traced(graph, usual, {2: 'height', 3: 'width'})
            if (difference := _difference(graph, data, (usual, smaller))) <= TOLERANCE:
                write_atomic(file, _with_properties(data, metadata(model)))
                return Export(Path(file), None, difference)
    data = _traced(graph, usual, {})
    difference = _difference(graph, data, (usual,)) if checkable else None
    write_atomic(file, _with_properties(data, metadata(model, usual, resize=size is not None)))
    return Export(Path(file), usual, difference)


def _traced(graph: InferenceGraph, size: tuple[int, int], free: dict[int, str]) -> bytes:
    """Writes ONNX; `free` names the dimensions of the images that are free besides the batch."""
    options: dict[str, Any] = {}
    if digit_version(torch.__version__) >= digit_version('2.5'):
        options['dynamo'] = False  # the new exporter needs the package onnxscript
    data, axes = io.BytesIO(), {0: 'batch', **free}
    with warnings.catch_warnings():  # the tracer's, that sizes become constants: they are meant to
        warnings.simplefilter('ignore')
        torch.onnx.export(
            graph,
            (_random_images(1, size, graph.channels),),
            data,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes={INPUT: axes, OUTPUT: axes},
            opset_version=17,
            **options,
        )
    return data.getvalue()


def size_in_tests(model: Any) -> tuple[int, int]:
    """Returns the height and width that the test pipeline gives images, or that they train at."""
    cfg = model.test_cfg or {}
    scale = _way_of_images(model)['scale']
    size = cfg.get('crop_size') or (scale and scale[::-1]) or model.data_preprocessor.size
    if not size:
        raise UserError('--size', 'none, and the test pipeline resizes no images', 'one')
    return size[0], size[1]


def metadata(
    model: Any, size: tuple[int, int] | None = None, resize: bool = False
) -> dict[str, Any]:
    """Returns what an exported file records: classes, palette, input, and the way from the file.

    `size` is height and width of the graph, if they are fixed; with `resize`, images are resized to
    them, whatever the test pipeline does. `way` is what `tools/predict_onnx.py` does with a file:
    its `channels` and their `value_range`, the `scale` (W, H) to resize to, `keep_ratio`, and what
    it `cannot` do. The graph itself normalises by `mean` and `std`; they are for users who cut that
    part off.
    """
    meta, preprocessor = getattr(model, 'dataset_meta', None) or {}, model.data_preprocessor
    channels = input_channels(model)
    kind = 'RGB' if channels == 3 else f'{channels} channels in the order of the config'
    images = f'{kind} in [0, 255], float32, (N, {channels}, H, W)'
    way = _way_of_images(model)
    if resize and size:
        way |= dict(scale=size[::-1], keep_ratio=False)
    notes: dict[str, Any] = dict(size=size, input=images, way=way)
    notes |= {key: list(meta[key]) for key in ('classes', 'palette') if meta.get(key)}
    for key in ('mean', 'std'):
        values = getattr(preprocessor, key, None)
        if values is not None:
            notes[key] = [round(value, 6) for value in values.flatten().tolist()]
    return notes


def _way_of_images(model: Any) -> dict[str, Any]:
    """Describes a test pipeline, for a script that has none of its transforms."""
    way: dict[str, Any] = dict(channels=None, value_range=None, scale=None, keep_ratio=False)
    cannot = []
    for step in getattr(model, 'cfg', {}).get('test_pipeline', []):
        kind = step['type'] if isinstance(step['type'], str) else step['type'].__name__
        match kind.rpartition('.')[2]:
            case 'LoadImageFromFile' if step.get('color_type', 'color') == 'color':
                pass
            case 'LoadChannels':
                channels = step.get('channels', (0, 1, 2))
                way |= dict(channels=channels, value_range=step.get('value_range'))
            case 'Resize' if {*step} <= {'type', 'scale', 'keep_ratio'} and way['scale'] is None:
                way |= dict(scale=step['scale'], keep_ratio=step.get('keep_ratio', False))
            case 'LoadAnnotations' | 'PackSegInputs' | 'SetDomain' | 'ScoreAtSize':
                pass
            case other:
                cannot.append(f'test_pipeline: {other}')
    if (model.test_cfg or {}).get('mode') == 'slide':
        cannot.append("model.test_cfg.mode: 'slide'")
    if getattr(model, 'align_corners', False):
        cannot.append('model.decode_head.align_corners: True')
    return {**way, 'cannot': cannot}


def input_channels(model: nn.Module) -> int:
    """Returns the number of channels of a segmentor's images, those of its first convolution."""
    modules = model.backbone.modules()
    return next((m.in_channels for m in modules if isinstance(m, nn.Conv2d)), 3)


def _with_properties(content: bytes, notes: dict[str, Any]) -> bytes:
    """Adds each note, as JSON, to the properties of an ONNX file, given and returned as bytes."""
    import onnx

    graph = onnx.load_model_from_string(content)
    onnx.helper.set_model_props(graph, {key: json.dumps(value) for key, value in notes.items()})
    return graph.SerializeToString()


@torch.no_grad()
def _normalisation(preprocessor: nn.Module, channels: int) -> tuple[Tensor, Tensor]:
    """Normalisation as a 1×1 convolution: weight `(C, C, 1, 1)` and bias `(C,)`; RGB for C = 3.

    A preprocessor is affine in each pixel of a decoded image (three channels are BGR in OpenMMLab),
    so its outputs for a black image and for one image per channel determine it.
    """
    probes = torch.zeros(channels + 1, channels, 1, 1, dtype=torch.uint8)
    probes[torch.arange(channels) + 1, torch.arange(channels)] = 255
    samples = [SegDataSample(metainfo=dict(img_shape=(1, 1), ori_shape=(1, 1))) for _ in probes]
    pixels = preprocessor(dict(inputs=list(probes), data_samples=samples))['inputs'][:, :, 0, 0]
    weight = (pixels[1:] - pixels[0]).T / 255
    if channels == 3:
        weight = weight.flip(1)
    return weight[..., None, None].contiguous(), pixels[0].clone()


def _bin_averages(length: int, bins: int) -> Tensor:
    """`(bins, length)`: row i averages over [⌊i·length/bins⌋, ⌈(i+1)·length/bins⌉).

    `length` may be traced, and ONNX divides negative integers in another way.
    """
    index, places = torch.arange(bins)[:, None], torch.arange(length)
    starts, ends = index * length // bins, ((index + 1) * length + bins - 1) // bins
    return ((places >= starts) & (places < ends)).float() / (ends - starts).float()


@torch.no_grad()
def _difference(graph: InferenceGraph, data: bytes, sizes: Iterable[tuple[int, ...]]) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=['CPUExecutionProvider'])
    largest = 0.0
    for size in sizes:
        images = _random_images(2, size, graph.channels)
        actual = torch.from_numpy(session.run([OUTPUT], {INPUT: images.numpy()})[0])
        expected = graph(images)
        if actual.shape != expected.shape:
            return float('inf')
        error = (actual - expected).abs().max() / expected.abs().max().clamp(min=1e-12)
        largest = max(largest, float(error))
    return largest


def _random_images(count: int, size: tuple[int, ...], channels: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *size), generator=generator).float()
