"""Export of the main path to ONNX."""

import copy
import importlib.util
import io
import json
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.utils import digit_version
from mmseg.models.decode_heads import MaskFormerHead
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from mmseg_cct.errors import UserError
from mmseg_cct.utils.files import write_atomic
from mmseg_cct.utils.text import one_line

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
        convolutions = (m for m in model.backbone.modules() if isinstance(m, nn.Conv2d))
        self.channels = next((m.in_channels for m in convolutions), 3)
        weight, bias = _normalisation(preprocessor, self.channels)
        self.register_buffer('weight', weight)
        self.register_buffer('bias', bias)
        for module in self.model.modules():
            for name, child in module.named_children():
                if isinstance(child, nn.AdaptiveAvgPool2d) and child.output_size not in (1, (1, 1)):
                    setattr(module, name, AveragePool(child.output_size))
        self.eval()  # the exporter restores this mode in all submodules

    def forward(self, images: Tensor) -> Tensor:
        """Maps images `(N, 3, H, W)`, RGB in [0, 255], float32, to seg_logits `(N, C, H, W)`.

        For a model with other channels (`LoadChannels`), they come in the order of its config.
        """
        height, width = images.shape[2:]
        missing = (0, -width % self.divisor, 0, -height % self.divisor)
        inputs = F.pad(F.conv2d(images, self.weight, self.bias), missing, value=self.padding)
        logits = self.model.encode_decode(inputs, [dict(img_shape=inputs.shape[2:])])
        return logits[:, :, :height, :width]


class AveragePool(nn.Module):
    """`nn.AdaptiveAvgPool2d`, which ONNX lacks, as a matrix product along each axis."""

    def __init__(self, output_size: int | tuple[int, int]) -> None:
        super().__init__()
        self.bins = output_size if isinstance(output_size, tuple) else (output_size, output_size)

    def forward(self, features: Tensor) -> Tensor:
        """Averages `(N, D, h, w)` over the bins."""
        rows, columns = map(_bin_averages, features.shape[2:], self.bins)
        return rows @ features @ columns.T


def _bin_averages(length: int, bins: int) -> Tensor:
    """`(bins, length)`: row i averages over [⌊i·length/bins⌋, ⌈(i+1)·length/bins⌉).

    `length` may be traced, and ONNX divides negative integers in another way.
    """
    index, places = torch.arange(bins)[:, None], torch.arange(length)
    starts, ends = index * length // bins, ((index + 1) * length + bins - 1) // bins
    return ((places >= starts) & (places < ends)).float() / (ends - starts).float()


def export_onnx(model: Any, file: str | Path, size: tuple[int, int] | None = None) -> float | None:
    """Exports to ONNX: input `images`, output `seg_logits`, any number of images of any size.

    The file carries classes, palette and test pipeline as JSON in its metadata.

    `size` is the height and width of all images, for a runtime or a network that needs them fixed.
    Returns the largest difference from PyTorch's logits, as a share of the largest logit; `None`
    without onnxruntime.

    Raises:
        UserError: The package onnx is missing, the head has one output for two classes or is
            MaskFormer's, or the file computes something else than PyTorch.
    """
    if model.out_channels == 1:  # its class is a threshold, where all others take the arg-max
        raise UserError('--onnx', 'a head with one output', 'out_channels=2')
    if isinstance(getattr(model, 'decode_head', None), MaskFormerHead):  # loops over the images
        raise UserError('--onnx', 'MaskFormerHead cannot be traced', 'Mask2FormerHead')
    if importlib.util.find_spec('onnx') is None:
        raise UserError('--onnx', 'no package onnx', "it: pip install 'mmseg_cct[export]'")
    import onnx

    graph, usual = InferenceGraph(model), size or model.data_preprocessor.size or (256, 256)
    free = {0: 'batch'} if size else {0: 'batch', 2: 'height', 3: 'width'}
    exported, difference = onnx.load_model_from_string(_export(graph, usual, free)), None
    if importlib.util.find_spec('onnxruntime') is not None:
        smaller = (usual[0] * 3 // 4, usual[1] * 3 // 4)
        sizes = [usual] if size else [usual, smaller]
        difference = _difference(graph, exported.SerializeToString(), sizes)
        if not difference <= TOLERANCE:
            problem = f'its logits differ from PyTorch by {difference:.0e} of the largest'
            raise UserError('--onnx', problem, '' if size else 'a fixed --size H W')
    notes = {'test_pipeline': model.cfg.get('test_pipeline'), **model.dataset_meta}
    notes = {key: json.dumps(value) for key, value in notes.items()}
    onnx.helper.set_model_props(exported, notes)
    write_atomic(file, exported.SerializeToString())
    return difference


def _export(graph: InferenceGraph, size: tuple[int, int], free: dict[int, str]) -> bytes:
    """Exports by the tracer or, if that does not know an operator, by torch's newer exporter."""
    # two images: the newer exporter takes a size of 1 for a constant
    images = (_random_images(2, size, graph.channels),)
    names: dict[str, Any] = dict(input_names=[INPUT], output_names=[OUTPUT])
    newer = digit_version(torch.__version__) >= digit_version('2.6')
    data = io.BytesIO()
    # the tracer warns that sizes become constants, which they are meant to
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            axes, tracer = {INPUT: free, OUTPUT: free}, dict(dynamo=False) if newer else {}
            options = dict(names, dynamic_axes=axes, opset_version=17, **tracer)
            torch.onnx.export(graph, images, data, **options)
            return data.getvalue()
        except torch.onnx.errors.UnsupportedOperatorError as error:
            if not newer or importlib.util.find_spec('onnxscript') is None:
                expected = "torch 2.6 and onnxscript: pip install 'mmseg_cct[export]'"
                raise UserError('--onnx', one_line(error), expected) from error
        shapes = (dict.fromkeys(free, torch.export.Dim.DYNAMIC),)
        program = torch.onnx.export(graph, images, dynamo=True, dynamic_shapes=shapes, **names)
    return program.model_proto.SerializeToString()


@torch.no_grad()
def _difference(graph: InferenceGraph, data: bytes, sizes: list[tuple[int, int]]) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=['CPUExecutionProvider'])
    largest = 0.0
    for size in sizes:
        images = _random_images(2, size, graph.channels)
        expected = graph(images)
        try:
            actual = torch.from_numpy(session.run([OUTPUT], {INPUT: images.numpy()})[0])
            error = (actual - expected).abs().max() / expected.abs().max().clamp(min=1e-12)
        except RuntimeError:  # a traced constant does not fit this size
            return float('inf')
        largest = max(largest, float(error))
    return largest


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


def _random_images(count: int, size: tuple[int, int], channels: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, *size), generator=generator).float()
