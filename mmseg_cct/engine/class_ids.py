"""Predicts class ids without the logits of all classes at the size of the image."""

from collections.abc import Iterator
from typing import Any

import torch
from mmseg.models import EncoderDecoder
from mmseg.models.utils import resize
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
    batch = model.data_preprocessor(data, False)
    inputs, metas = batch['inputs'], [sample.metainfo for sample in batch['data_samples']]
    if segmentor.test_cfg.get('mode', 'whole') == 'slide':
        return [_of_windows(segmentor, inputs[i : i + 1], meta) for i, meta in enumerate(metas)]
    logits = segmentor.inference(inputs, metas)
    return [_ids(segmentor, *pair) for pair in zip(logits, metas)]


def predicts_as_encoder_decoder(kind: Any, *methods: str) -> bool:
    """Whether a class has these methods, and those of inference, from `EncoderDecoder`."""
    return isinstance(kind, type) and all(
        getattr(kind, name, None) is getattr(EncoderDecoder, name)
        for name in ('inference', 'slide_inference', *methods)
    )


def _of_windows(segmentor: Any, image: Tensor, meta: dict[str, Any]) -> Tensor:
    """Predicts `image` `(1, 3, H, W)` in windows; holds the logits of one row of them if it can."""
    is_whole = tuple(image.shape[2:]) == tuple(meta['ori_shape'][:2]) and not meta.get('flip')
    rows = _rows_of_windows(segmentor, image, meta)
    if is_whole:
        return torch.cat([_ids(segmentor, row, dict(ori_shape=row.shape[1:])) for row in rows])
    return _ids(segmentor, torch.cat(list(rows), 1), meta)


def _rows_of_windows(segmentor: Any, image: Tensor, meta: dict[str, Any]) -> Iterator[Tensor]:
    """Yields logits `(C, ·, W)` from top to bottom, as MMSeg's `slide_inference` averages them."""
    sides = zip(image.shape[2:], segmentor.test_cfg.crop_size, segmentor.test_cfg.stride)
    tops, lefts = ([*_starts(*side)] for side in sides)
    (height, width), wide = segmentor.test_cfg.crop_size, image.shape[3]
    height = min(height, image.shape[2])
    total = image.new_zeros(segmentor.out_channels, height, wide)
    count = image.new_zeros(height, wide)
    for top, below in zip(tops, [*tops[1:], image.shape[2]]):
        for left in lefts:
            window = image[:, :, top : top + height, left : left + width]
            metas = [dict(meta, img_shape=window.shape[2:])]
            total[..., left : left + width] += segmentor.encode_decode(window, metas)[0]
            count[..., left : left + width] += 1
        done = below - top  # rows that no later window reaches
        yield total[:, :done] / count[:done]
        total, count = (
            torch.cat([each[..., done:, :], torch.zeros_like(each[..., :done, :])], -2)
            for each in (total, count)
        )


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
