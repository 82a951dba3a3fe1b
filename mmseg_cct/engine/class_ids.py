"""Predicts class ids without the logits of all classes at the size of the image."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from mmseg.models import EncoderDecoder
from mmseg.models.utils import resize
from mmseg.structures import SegDataSample
from torch import Tensor

from mmseg_cct.models.data_preprocessors import domain_of


def predict_class_ids(model: Any, data: dict[str, Any]) -> list[Tensor]:
    """Predicts class ids `(H, W)` of each image in a batch for `test_step`, at its original size.

    They are those of `test_step`, which first enlarges the logits of all C classes to the image.
    Here one class is enlarged at a time, and sliding windows are summed row by row. A model that
    predicts in a way of its own runs its `test_step`.

    Args:
        model: A segmentor in evaluation mode.
        data: The batch. Gradients are expected to be off.

    Returns:
        Class ids, uint8 for MMSegmentation's way of prediction.
    """
    segmentor = model
    if hasattr(model, 'domains'):
        segmentor = model.domains[domain_of(data['data_samples'], model.domains)]
    if not predicts_as_encoder_decoder(type(segmentor), 'predict', 'postprocess_result'):
        return [result.pred_sem_seg.data[0] for result in model.test_step(data)]
    if segmentor.test_cfg.get('mode', 'whole') == 'slide':
        crop, pairs = segmentor.test_cfg.crop_size, zip(data['inputs'], data['data_samples'])
        return [_of_windows(segmentor, _image(model, crop, *pair)) for pair in pairs]
    batch = model.data_preprocessor(data, False)
    inputs, metas = batch['inputs'], [sample.metainfo for sample in batch['data_samples']]
    logits = segmentor.inference(inputs, metas)
    return [_ids(segmentor, *pair) for pair in zip(logits, metas)]


def predicts_as_encoder_decoder(kind: Any, *methods: str) -> bool:
    """Whether a class has these methods, and those of inference, from `EncoderDecoder`."""
    return isinstance(kind, type) and all(
        getattr(kind, name, None) is getattr(EncoderDecoder, name)
        for name in ('inference', 'slide_inference', *methods)
    )


class _Image(NamedTuple):
    """An image for the network, read in strips."""

    height: int
    width: int
    meta: dict[str, Any]
    strip: Callable[[int, int], Tensor]  # rows from one to another, `(1, 3, ·, W)`


def _image(model: Any, crop: Sequence[int], image: Tensor, sample: SegDataSample) -> _Image:
    """Normalises strip by strip if it can: in float32 the whole image takes 4 times its bytes."""

    def prepared(rows: Tensor) -> dict[str, Any]:
        return model.data_preprocessor(dict(inputs=[rows], data_samples=[sample]), False)

    settings = getattr(model.data_preprocessor, 'test_cfg', dict(size=None)) or {}
    divisor = settings.get('size_divisor') or 1
    if 'size' in settings or any(side % divisor for side in crop):
        batch = prepared(image)
        whole, meta = batch['inputs'], batch['data_samples'][0].metainfo
        return _Image(whole.shape[2], whole.shape[3], meta, lambda top, end: whole[:, :, top:end])
    # a strip is padded below and on the right, as the image is
    below, right = (-side % divisor for side in image.shape[1:])
    height, width = image.shape[1] + below, image.shape[2] + right
    meta = {**sample.metainfo, 'padding_size': [0, right, 0, below]}
    return _Image(height, width, meta, lambda top, end: prepared(image[:, top:end])['inputs'])


def _of_windows(segmentor: Any, image: _Image) -> Tensor:
    """Predicts in windows; holds the logits of one row of them if the image keeps its size."""
    rows = _rows_of_windows(segmentor, image)
    height, width = image.meta['ori_shape'][:2]
    padding = [0, image.width - width, 0, image.height - height]
    if image.meta.get('padding_size', [0] * 4) != padding or image.meta.get('flip'):
        return _ids(segmentor, torch.cat([row.clone() for row in rows], 1), image.meta)
    ids = [_ids(segmentor, row, dict(ori_shape=row.shape[1:])) for row in rows]
    return torch.cat(ids)[:height, :width]


def _rows_of_windows(segmentor: Any, image: _Image) -> Iterator[Tensor]:
    """Yields logits `(C, ·, W)` from top to bottom, as MMSeg's `slide_inference` averages them.

    They are overwritten when the next ones are due.
    """
    (height, width), (down, right) = segmentor.test_cfg.crop_size, segmentor.test_cfg.stride
    height = min(height, image.height)
    tops = [*_starts(image.height, height, down)]
    total = next(segmentor.parameters()).new_zeros(segmentor.out_channels, height, image.width)
    count = torch.zeros_like(total[0])
    for top, below in zip(tops, [*tops[1:], image.height]):
        strip = image.strip(top, top + height)
        for left in _starts(image.width, width, right):
            window = strip[..., left : left + width]
            metas = [dict(image.meta, img_shape=window.shape[2:])]
            total[..., left : left + width] += segmentor.encode_decode(window, metas)[0]
            count[..., left : left + width] += 1
        done = below - top  # rows that no later window reaches
        yield total[:, :done].div_(count[:done])
        for each in (total, count):
            each[..., : height - done, :] = each[..., done:, :].clone()
            each[..., height - done :, :] = 0


def _starts(length: int, crop: int, stride: int) -> Iterator[int]:
    """Yields where windows start; the last one ends with the image."""
    for index in range(max(length - crop + stride - 1, 0) // stride + 1):
        yield max(min(index * stride, length - crop), 0)


def _ids(segmentor: Any, logits: Tensor, meta: dict[str, Any]) -> Tensor:
    """Compares logits `(C, h, w)` at the original size `(H, W)`, as `postprocess_result` does."""
    left, right, top, bottom = meta.get('img_padding_size') or meta.get('padding_size', [0] * 4)
    logits = logits[:, top : logits.shape[1] - bottom, left : logits.shape[2] - right]
    if meta.get('flip'):
        logits = logits.flip(2 if meta['flip_direction'] == 'horizontal' else 1)
    size = tuple(meta['ori_shape'][:2])

    def score(number: int) -> Tensor:
        scores = logits[number]
        if tuple(scores.shape) == size:
            return scores
        settings = dict(mode='bilinear', align_corners=segmentor.align_corners, warning=False)
        return resize(scores.contiguous()[None, None], size, **settings)[0, 0]

    best = score(0)
    if len(logits) == 1:
        return (best.sigmoid() > segmentor.decode_head.threshold).to(torch.uint8)
    best, ids = best.clone(), torch.zeros(size, dtype=torch.uint8, device=logits.device)
    for number in range(1, len(logits)):
        scores = score(number)
        ids.masked_fill_(scores > best, number)
        torch.maximum(best, scores, out=best)
    return ids
