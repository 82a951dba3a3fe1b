"""Predictions of a model in less memory and time: class by class, merged BatchNorms."""

import copy
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from mmcv.cnn import fuse_conv_bn
from mmseg.models import EncoderDecoder
from mmseg.models.utils import resize
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.errors import UserError

_SIDE = 512  # of the piece of an image on which the two are compared


class Prediction(NamedTuple):
    """What a model predicts at each pixel of an image."""

    class_ids: Tensor  # `(H, W)`
    confidence: Tensor | None = None  # if asked for: probability of that class, `(H, W)` in [0, 1]


def predict(model: Any, data: dict[str, Any], with_confidence: bool = False) -> list[Prediction]:
    """Predicts the class ids of each image in a batch for `test_step`, at its original size.

    They are those of `test_step`, which first enlarges the logits of all C classes to the image.
    Here one class is enlarged at a time, and the sliding windows of an image that keeps its size
    are summed row by row. A model that predicts in a way of its own runs its `test_step`; the ids
    of others are uint8. The segmentor is in evaluation mode, and gradients are off.
    """
    if not predicts_as_encoder_decoder(type(model), 'predict', 'postprocess_result'):
        if with_confidence:
            raise UserError('--confidence', type(model).__name__, 'the inference of EncoderDecoder')
        return [Prediction(result.pred_sem_seg.data[0]) for result in model.test_step(data)]
    pairs = [*zip(data['inputs'], data['data_samples'])]
    divisor = _divisor(model.data_preprocessor, model.test_cfg)
    if divisor and all(_keeps_size(*pair) for pair in pairs):
        return [_of_windows(model, divisor, *pair, with_confidence) for pair in pairs]
    batch = model.data_preprocessor(data, False)
    metas = [sample.metainfo for sample in batch['data_samples']]
    logits = model.inference(batch['inputs'], metas)
    return [_compare(model, *pair, with_confidence) for pair in zip(logits, metas)]


def predicts_as_encoder_decoder(segmentor: Any, *methods: str) -> bool:
    """Whether a class has these methods, and those of inference, from `EncoderDecoder`."""
    return isinstance(segmentor, type) and all(
        getattr(segmentor, name, None) is getattr(EncoderDecoder, name)
        for name in ('inference', 'slide_inference', *methods)
    )


def _divisor(preprocessor: Any, test_cfg: Any) -> int:
    """Returns what a strip of windows is padded to, below and on the right as the image; or 0."""
    padding = getattr(preprocessor, 'test_cfg', dict(size=None)) or {}
    divisor = padding.get('size_divisor') or 1
    slides = test_cfg.get('mode') == 'slide' and 'size' not in padding
    return divisor if slides and not any(side % divisor for side in test_cfg.crop_size) else 0


def _keeps_size(image: Tensor, sample: SegDataSample) -> bool:
    meta = sample.metainfo
    padded = meta.get('flip') or 'img_padding_size' in meta or 'padding_size' in meta
    return not padded and tuple(image.shape[1:]) == tuple(meta['ori_shape'][:2])


def _of_windows(
    segmentor: Any, divisor: int, image: Tensor, sample: SegDataSample, with_confidence: bool
) -> Prediction:
    """Predicts `image` `(3, H, W)` in windows, averaged as MMSeg's `slide_inference` does.

    In memory are the logits of a row of windows, and a strip of the image in float32.
    """
    padded_height, padded_width = (side + -side % divisor for side in image.shape[1:])
    (height, width), (down, right) = segmentor.test_cfg.crop_size, segmentor.test_cfg.stride
    height, predictions = min(height, padded_height), []
    total = next(segmentor.parameters()).new_zeros(segmentor.out_channels, height, padded_width)
    count = torch.zeros_like(total[0])
    tops = [*_starts(padded_height, height, down)]
    # A row of windows at a time: `total` is the strip of the image that it covers.
    for top, below in zip(tops, [*tops[1:], padded_height]):
        data = dict(inputs=[image[:, top : top + height]], data_samples=[sample])
        strip = segmentor.data_preprocessor(data, False)['inputs']
        for left in _starts(padded_width, width, right):
            window = strip[..., left : left + width]
            metas = [dict(sample.metainfo, img_shape=window.shape[2:])]
            total[..., left : left + width] += segmentor.encode_decode(window, metas)[0]
            count[..., left : left + width] += 1
        done = below - top  # rows that no later window reaches
        logits = total[:, :done].div_(count[:done])
        meta = {**sample.metainfo, 'ori_shape': logits.shape[1:]}
        predictions.append(_compare(segmentor, logits, meta, with_confidence))
        # The next row starts lower: what it shares with this one moves up.
        for rows in (total, count):
            rows[..., : height - done, :] = rows[..., done:, :].clone()
            rows[..., height - done :, :] = 0
    maps = (parts for parts in zip(*predictions) if parts[0] is not None)
    return Prediction(*(torch.cat(parts)[: image.shape[1], : image.shape[2]] for parts in maps))


def _starts(length: int, crop: int, stride: int) -> Iterator[int]:
    """Yields where windows start; the last one ends with the image."""
    for index in range(max(length - crop + stride - 1, 0) // stride + 1):
        yield max(min(index * stride, length - crop), 0)


def _compare(model: Any, logits: Tensor, meta: dict[str, Any], with_confidence: bool) -> Prediction:
    """Compares logits `(C, h, w)` at the original size `(H, W)`, as `postprocess_result` does."""
    if not logits.isfinite().all():  # NaN would become class 0 without a word
        image_path = meta.get('img_path') or 'an image'
        raise UserError(image_path, 'the logits are not finite', 'finite pixels and weights')
    left, right, top, bottom = meta.get('img_padding_size') or meta.get('padding_size', [0] * 4)
    logits = logits[:, top : logits.shape[1] - bottom, left : logits.shape[2] - right]
    if meta.get('flip'):
        logits = logits.flip(2 if meta['flip_direction'] == 'horizontal' else 1)
    if len(logits) == 1:
        best = _resized(logits, 0, meta['ori_shape'][:2], model.align_corners)
        ids = (best.sigmoid() > model.decode_head.threshold).to(torch.uint8)
        return Prediction(ids, best.where(ids > 0, -best).sigmoid() if with_confidence else None)
    return compare(logits, meta['ori_shape'][:2], model.align_corners, with_confidence)


def compare(
    logits: Tensor, size: Sequence[int], align_corners: bool, with_confidence: bool
) -> Prediction:
    """Finds the best class of logits `(C, h, w)`, C > 1, which are resized to `(H, W)` one by one.

    So nothing of size C×H×W ever exists.
    """
    best = _resized(logits, 0, size, align_corners)
    best, ids = best.clone(), torch.zeros_like(best, dtype=torch.uint8)
    log_sum = best.float() if with_confidence else None
    for number in range(1, len(logits)):
        scores = _resized(logits, number, size, align_corners)
        ids.masked_fill_(scores > best, number)
        log_sum = None if log_sum is None else torch.logaddexp(log_sum, scores)
        torch.maximum(best, scores, out=best)  # last: `log_sum` begins as the same memory
    return Prediction(ids, None if log_sum is None else (best - log_sum).exp())


def _resized(logits: Tensor, number: int, size: Sequence[int], align_corners: bool) -> Tensor:
    scores = logits[number]
    if tuple(scores.shape) == tuple(size):
        return scores
    settings = dict(mode='bilinear', align_corners=align_corners, warning=False)
    return resize(scores.contiguous()[None, None], tuple(size), **settings)[0, 0]


def fused_model(model: Any, data: dict[str, Any]) -> Any:
    """Copies `model` with each BatchNorm merged into the convolution before it, channels last.

    This makes inference on a CPU faster. Modules may run in another order than they are listed in,
    or a norm may do more than normalise, so the logits of a piece of an image are compared: the
    result is `model` itself if it cannot be copied, or they differ by 1e-3 of the largest.
    It is in evaluation mode; `data` is a batch for its `test_step`, and gradients are off.
    """
    # The hooks of a training refer to its runner, which cannot be copied; a teacher need not be.
    left_out: dict[int, Any] = {
        id(model._forward_hooks): OrderedDict(),
        id(getattr(model, '_teacher', ())): (),
    }
    # A corner of the first image: logits are large, and two models have some.
    image = data['inputs'][0][..., :_SIDE, :_SIDE]
    metainfo = data['data_samples'][0].metainfo
    meta = {key: value for key, value in metainfo.items() if 'padding' not in key}
    sizes = dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape'), tuple(image.shape[-2:]))
    sample = SegDataSample(metainfo={**meta, **sizes})
    try:
        fused = fuse_conv_bn(copy.deepcopy(model, left_out)).to(memory_format=torch.channels_last)
        # a preprocessor may change the batch: each has its own
        batches = (dict(inputs=[image], data_samples=[sample.clone()]) for _ in range(2))
        steps = zip((model.test_step, fused.test_step), batches)
        old, new = (step(batch)[0].seg_logits.data for step, batch in steps)
    except Exception:  # a module cannot be copied or merged; `model` itself reports other errors
        return model
    return fused if (old - new).abs().max() <= 1e-3 * old.abs().max() else model
