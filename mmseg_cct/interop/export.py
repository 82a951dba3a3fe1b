"""Export of the main path to ONNX."""

import copy
import functools
import importlib.util
import io
import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Copy of a segmentor with its normalisation, from decoded images to logits.

    A size that is not a multiple of the network's stride is a `UserError`.

    Shapes: `N` images, `C` classes, `H×W` the fixed size of the graph.
    """

    def __init__(self, model: nn.Module, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size
        self.model = copy.deepcopy(model).cpu().eval().requires_grad_(False)
        preprocessor = self.model.data_preprocessor
        divisor = (preprocessor.test_cfg or {}).get('size_divisor') or 1
        divisor = max(divisor, getattr(self.model.decode_head, 'stride', 1))
        if any(side < divisor or side % divisor for side in size):
            raise UserError(
                f'--size {size[0]} {size[1]}',
                '',
                f'multiples of {divisor}, the stride of the network',
            )
        self.channels = input_channels(self.model)
        weight, bias = _normalisation(preprocessor, size, self.channels)
        self.register_buffer('weight', weight)
        self.register_buffer('bias', bias)
        self._free_batch()
        self._fix_pooling()
        self.eval()  # the exporter restores this mode in all submodules

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `(N, 3, H, W)`, RGB in [0, 255], float32, to seg_logits `(N, C, H, W)`.

        For a model with other channels (`LoadChannels`), they come in the order of its config.

        For a binary model with one output, C is 2 and the first channel holds the threshold, so the
        class is the arg-max here too.
        """
        meta = dict(img_shape=self.size, ori_shape=self.size, pad_shape=self.size)
        logits = self.model.encode_decode(F.conv2d(images, self.weight, self.bias), [meta])
        if logits.shape[-2:] != self.size:
            logits = F.interpolate(logits, self.size, mode='bilinear', align_corners=False)
        if logits.shape[1] == 1:
            threshold = float(torch.tensor(self.model.decode_head.threshold).logit())
            logits = torch.cat([torch.full_like(logits, threshold), logits], dim=1)
        return logits

    def _free_batch(self) -> None:
        """Replaces Swin's merging of windows, whose batch size tracing would freeze."""
        for module in self.model.modules():
            if isinstance(module, ShiftWindowMSA):
                module.window_reverse = functools.partial(_merge_windows, module.window_size)

    @torch.no_grad()
    def _fix_pooling(self) -> None:
        """Replaces adaptive pooling, which ONNX lacks, by products with constants."""
        sizes: dict[str, tuple[int, int]] = {}
        pools = {  # pooling to one bin is a mean, which ONNX has
            name: module
            for name, module in self.model.named_modules()
            if isinstance(module, nn.AdaptiveAvgPool2d) and module.output_size not in (1, (1, 1))
        }
        hooks = [
            module.register_forward_hook(
                lambda _, inputs, __, name=name: sizes.update({name: inputs[0].shape[-2:]})
            )
            for name, module in pools.items()
        ]
        self(torch.zeros(1, self.channels, *self.size))
        for hook in hooks:
            hook.remove()
        for name in sizes:
            parent, _, child = name.rpartition('.')
            setattr(
                self.model.get_submodule(parent),
                child,
                FixedAveragePool(sizes[name], pools[name].output_size),
            )


def _merge_windows(side: int, windows: Tensor, height: int, width: int) -> Tensor:
    """Merges windows `(N · H/s · W/s, s, s, D)` to `(N, H, W, D)`."""
    rows = windows.view(-1, height // side, width // side, side, side, windows.shape[-1])
    return rows.transpose(2, 3).reshape(-1, height, width, windows.shape[-1])


class FixedAveragePool(nn.Module):
    """`nn.AdaptiveAvgPool2d` for inputs of one size, as a matrix product along each axis."""

    def __init__(self, input_size: tuple[int, int], output_size: int | tuple[int, int]) -> None:
        super().__init__()
        bins = output_size if isinstance(output_size, tuple) else (output_size, output_size)
        self.register_buffer('rows', _bin_averages(input_size[0], bins[0]))
        self.register_buffer('columns', _bin_averages(input_size[1], bins[1]).T.contiguous())

    def forward(self, features: Tensor) -> Tensor:
        """Averages `(N, D, h, w)` over the bins."""
        return self.rows @ features @ self.columns


@dataclass
class Export:
    """Exported file, compared with PyTorch.

    Attributes:
        file: Path of the file.
        difference: Largest difference of its logits from PyTorch's, as a share of the largest
            logit; None without onnxruntime.
    """

    file: Path
    difference: float | None


def export_onnx(model: nn.Module, size: tuple[int, int], file: str | Path) -> Export:
    """Exports to ONNX: input `images`, output `seg_logits`, dynamic batch size.

    The file carries `metadata`, and is compared with the model on two random images. A `UserError`
    says if onnx is missing.
    """
    if importlib.util.find_spec('onnx') is None:
        raise UserError('--onnx', 'no package onnx', "it: pip install 'mmseg_cct[export]'")
    graph = InferenceGraph(model, size)
    example = _random_images(1, size, graph.channels)
    options: dict[str, Any] = {}
    if digit_version(torch.__version__) >= digit_version('2.5'):
        options['dynamo'] = False  # the new exporter needs the package onnxscript
    data = io.BytesIO()
    with _quiet():
        torch.onnx.export(
            graph,
            (example,),
            data,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes={INPUT: {0: 'batch'}, OUTPUT: {0: 'batch'}},
            opset_version=17,
            **options,
        )
    write_atomic(file, _with_properties(data.getvalue(), metadata(model, size)))
    try:
        import onnxruntime
    except ImportError:
        return Export(Path(file), None)
    session = onnxruntime.InferenceSession(str(file), providers=['CPUExecutionProvider'])
    images = _random_images(2, size, graph.channels)
    actual = torch.from_numpy(session.run([OUTPUT], {INPUT: images.numpy()})[0])
    return Export(Path(file), _difference(graph, images, actual))


def metadata(model: nn.Module, size: tuple[int, int]) -> dict[str, Any]:
    """Returns what an exported file records: classes, palette, size (H, W), input, normalisation.

    The graph itself normalises by `mean` and `std`; they are for users who cut that part off.
    """
    meta, preprocessor = getattr(model, 'dataset_meta', None) or {}, model.data_preprocessor
    channels = input_channels(model)
    kind = 'RGB' if channels == 3 else f'{channels} channels in the order of the config'
    images = f'{kind} in [0, 255], float32, (N, {channels}, H, W)'
    notes: dict[str, Any] = dict(size=list(size), input=images)
    notes |= {key: list(meta[key]) for key in ('classes', 'palette') if meta.get(key)}
    for key in ('mean', 'std'):
        values = getattr(preprocessor, key, None)
        if values is not None:
            notes[key] = [round(value, 6) for value in values.flatten().tolist()]
    return notes


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
def _normalisation(
    preprocessor: nn.Module, size: tuple[int, int], channels: int
) -> tuple[Tensor, Tensor]:
    """Normalisation as a 1×1 convolution: weight `(C, C, 1, 1)` and bias `(C,)`; RGB for C = 3.

    A preprocessor is affine in each pixel of a decoded image (three channels are BGR in OpenMMLab),
    so its outputs for a black image and for one image per channel determine it.
    """
    probes = torch.zeros(channels + 1, channels, *size, dtype=torch.uint8)
    numbers = list(range(channels))
    probes[[number + 1 for number in numbers], numbers] = 255
    samples = [SegDataSample(metainfo=dict(img_shape=size, ori_shape=size)) for _ in probes]
    pixels = preprocessor(dict(inputs=list(probes), data_samples=samples))['inputs'][:, :, 0, 0]
    weight = (pixels[1:] - pixels[0]).T / 255
    if channels == 3:
        weight = weight.flip(1)
    return weight[..., None, None].contiguous(), pixels[0].clone()


def _bin_averages(length: int, bins: int) -> Tensor:
    """`(bins, length)`: row i averages over [⌊i·length/bins⌋, ⌈(i+1)·length/bins⌉)."""
    weights = torch.zeros(bins, length)
    for index in range(bins):
        start, end = index * length // bins, -(-(index + 1) * length // bins)
        weights[index, start:end] = 1 / (end - start)
    return weights


@torch.no_grad()
def _difference(graph: nn.Module, images: Tensor, actual: Tensor) -> float:
    expected = graph(images)
    if actual.shape != expected.shape:
        return float('inf')
    return float((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-12))


def _random_images(count: int, size: tuple[int, int], channels: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *size), generator=generator).float()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the tracer, which warns that sizes become constants: they are meant to."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        yield
