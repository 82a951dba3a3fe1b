import os

import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.structures import PixelData
from mmseg.registry import METRICS
from mmseg.structures import SegDataSample
from PIL import Image
from ranks import on_two_ranks

from mmseg_cct.errors import UserError

META = dict(domains=dict(a=dict(classes=('x', 'y', 'z')), b=dict(classes=('u', 'v'))))


def make(**kwargs):
    metric = METRICS.build(dict(dict(type='MultiDomainIoUMetric', iou_metrics=['mIoU']), **kwargs))
    metric.dataset_meta = META
    return metric


def draw_sample(domain, number):
    generator = torch.Generator().manual_seed(number)
    classes = len(META['domains'][domain]['classes'])
    truth, prediction = torch.randint(0, classes, (2, 1, 6, 8), generator=generator)
    truth[0, 0, 0] = 255
    sample = SegDataSample(metainfo=dict(domain=domain, img_path=f'{number}.png'))
    sample.gt_sem_seg, sample.pred_sem_seg = PixelData(data=truth), PixelData(data=prediction)
    return sample


def mean_iou(samples, classes):
    """From all pixels of all images together, in percent."""
    truth = torch.cat([sample.gt_sem_seg.data.flatten() for sample in samples])
    prediction = torch.cat([sample.pred_sem_seg.data.flatten() for sample in samples])
    prediction, truth = prediction[truth != 255], truth[truth != 255]
    ious = [
        ((prediction == c) & (truth == c)).sum() / ((prediction == c) | (truth == c)).sum()
        for c in range(classes)
    ]
    return 100 * float(torch.stack(ious).mean())


SAMPLES = [draw_sample(domain, number) for number, domain in enumerate('aabab')]


def evaluate(metric, samples=SAMPLES):
    evaluator = Evaluator(metric)
    evaluator.dataset_meta = META
    for sample in samples:
        evaluator.process([sample], None)
    return evaluator.evaluate(len(samples))


def test_domains_and_their_average():
    metric = make()
    evaluate(metric, SAMPLES[3:])  # an evaluation before leaves nothing
    metrics = evaluate(metric)
    a, b = (
        mean_iou([s for s in SAMPLES if s.domain == domain], classes)
        for domain, classes in (('a', 3), ('b', 2))
    )
    assert (metrics['a/mIoU'], metrics['b/mIoU']) == pytest.approx((a, b), abs=0.01)
    assert metrics['mIoU_avg'] == pytest.approx((a + b) / 2, abs=0.02)
    parts = ('a/{}', 'b/{}', '{}_avg')
    assert set(metrics) == {p.format(m) for p in parts for m in ('aAcc', 'mIoU', 'mAcc')}
    alone = evaluate(make(), [s for s in SAMPLES if s.domain == 'b'])
    assert alone['mIoU_avg'] == alone['b/mIoU'] and 'a/mIoU' not in alone


@pytest.mark.parametrize('format_only', [False, True])
def test_predictions_are_written_in_a_folder_for_each_domain(tmp_path, format_only):
    metrics = evaluate(make(output_dir=str(tmp_path), format_only=format_only))
    assert (metrics == {}) == format_only
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*.png')}
    assert files == {'a/0.png', 'a/1.png', 'a/3.png', 'b/2.png', 'b/4.png'}
    written = np.asarray(Image.open(tmp_path / 'b' / '2.png'))
    assert np.array_equal(written, SAMPLES[2].pred_sem_seg.data[0].numpy())


def test_two_processes_give_the_metrics_of_one(tmp_path):
    """Also where they share no folder: 'gpu', which the configs have, gathers without files."""

    def evaluated(rank):
        (tmp_path / f'node{rank}').mkdir()
        os.chdir(tmp_path / f'node{rank}')
        metric = make(collect_device='gpu')
        metric.process(None, [sample.to_dict() for sample in SAMPLES[rank::2]])
        return metric.evaluate(len(SAMPLES))

    # The ranks have different numbers of images of a domain.
    assert on_two_ranks(evaluated, tmp_path) == [evaluate(make())] * 2


def test_a_set_of_one_domain_is_an_error():
    with pytest.raises(UserError, match='one domain; expected a MultiDomainConcat'):
        make().dataset_meta = dict(classes=('x', 'y'))
