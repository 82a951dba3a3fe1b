"""One validation batch before a training: what it refuses, and that it leaves no trace."""

import random
import re
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.dataset import pseudo_collate
from mmengine.evaluator import DumpResults, Evaluator
from mmengine.hooks import CheckpointHook, EarlyStoppingHook
from mmengine.optim import ReduceOnPlateauLR
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from mmseg.engine.hooks import SegVisualizationHook
from mmseg.evaluation import IoUMetric
from mmseg.registry import DATASETS
from mmseg.structures import SegDataSample
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader

from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.evaluation import ClassIoUMetric, MultiDomainIoUMetric
from mmseg_cct.preflight.rehearsal import (
    batch_problems,
    file_name_problems,
    rehearse_validation,
)

CLASSES = ('road', 'car')


class Model(nn.Module):
    """Predicts class 0, and draws on each random generator as some models do."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.modes = []

    def val_step(self, batch):
        self.modes.append((self.training, torch.is_grad_enabled()))
        random.random(), np.random.rand(), torch.rand(1)
        self.norm(torch.stack(batch['inputs']).float())
        for sample in batch['data_samples']:
            data = torch.zeros(1, *sample.metainfo['ori_shape'], dtype=torch.long)
            sample.pred_sem_seg = PixelData(data=data)
        return batch['data_samples']


class Set(list):
    metainfo = dict(classes=CLASSES, palette=[[0, 0, 0], [255, 0, 0]])


def sample(truth=(4, 6), domain='a', path='v0.png'):
    packed = SegDataSample(metainfo=dict(img_path=path, ori_shape=(4, 6), domain=domain))
    if truth:
        packed.gt_sem_seg = PixelData(data=torch.zeros(1, *truth, dtype=torch.long))
    return dict(inputs=torch.zeros(3, 4, 6), data_samples=packed)


class Domains(Set):
    """The sets of several domains, one after the other."""

    def __init__(self, **domains):
        super().__init__(each for part in domains.values() for each in part)
        self.domains = domains
        self.metainfo = dict(domains=dict.fromkeys(domains, Set.metainfo))


def runner_of(metric=None, samples=None, save_best=None, meta=None):
    evaluator = Evaluator(metric or IoUMetric())
    dataset = Set(samples or [sample(), sample()])
    evaluator.dataset_meta = meta or Set.metainfo
    loader = SimpleNamespace(dataset=dataset, batch_size=1, collate_fn=pseudo_collate)
    loader.batch_size = len(samples) if samples else 1
    return SimpleNamespace(
        model=Model().train(),
        val_dataloader=loader,
        val_loop=SimpleNamespace(evaluator=evaluator, fp16=False),
        param_schedulers=None,
        hooks=[CheckpointHook(save_best=save_best, rule=save_best and 'greater')],
    )


def test_it_leaves_no_trace(tmp_path):
    metric = IoUMetric(output_dir=str(tmp_path))
    runner = runner_of(metric)
    weights = {key: value.clone() for key, value in runner.model.state_dict().items()}
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    rehearse_validation(runner)
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    assert before == after
    assert runner.model.modes == [(False, False)]
    assert runner.model.training
    assert runner.model.norm.training
    for key, value in runner.model.state_dict().items():
        assert torch.equal(value, weights[key])
    assert metric.results == []
    assert metric.output_dir == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('key', ['mIoU', 'aAcc', 'auto', None])
def test_metrics_that_there_are(key):
    rehearse_validation(runner_of(save_best=key))


def test_classes_of_other_images_have_an_iou():
    rehearse_validation(runner_of(ClassIoUMetric(), save_best='IoU.car'))
    with pytest.raises(UserError, match=r"save_best='IoU.dog': no such metric; expected .*IoU.car"):
        rehearse_validation(runner_of(ClassIoUMetric(), save_best='IoU.dog'))


def test_early_stopping_waits_for_a_metric_that_there_is():
    runner = runner_of()
    runner.hooks = [EarlyStoppingHook('mIoU'), EarlyStoppingHook('IoU.car', rule='greater')]
    with pytest.raises(UserError, match=r"EarlyStoppingHook\.monitor='IoU\.car': no such metric"):
        rehearse_validation(runner)


def test_scheduler_waits_for_a_metric_of_which_more_is_better():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    for monitor, said in (
        ('IoU.dog', 'no such metric'),
        ('mIoU', "waits for less of it (rule='less')"),
    ):
        runner = runner_of(ClassIoUMetric())
        runner.param_schedulers = [ReduceOnPlateauLR(optimizer, monitor=monitor, by_epoch=True)]
        with pytest.raises(UserError, match=re.escape(f"LR.monitor='{monitor}': {said}")):
            rehearse_validation(runner)


def runner_of_domains(second, save_best=None):
    dataset = Domains(a=[sample(), sample(None)], b=[second])
    runner = runner_of(MultiDomainIoUMetric(), save_best=save_best, meta=dataset.metainfo)
    runner.val_dataloader.dataset = dataset
    return runner


def test_all_domains_have_metrics():
    second = sample(domain='b')
    for key in ('b/mIoU', 'mIoU_avg', 'a/aAcc'):
        rehearse_validation(runner_of_domains(second, key))
    with pytest.raises(UserError, match=r"save_best='c/mIoU': .* expected a/aAcc, .*, b/aAcc"):
        rehearse_validation(runner_of_domains(second, 'c/mIoU'))


@pytest.mark.parametrize(
    ('truth', 'expected'),
    [(None, 'v0.png: no mask loaded'), ((2, 3), 'v0.png: a mask of 3×2 pixels')],
)
def test_the_first_image_of_every_domain_can_be_validated(truth, expected):
    place = r'^val_dataloader\.dataset\.domains\.b\.pipeline: '
    with pytest.raises(UserError, match=place + expected):
        rehearse_validation(runner_of_domains(sample(truth, 'b')))


def test_a_prefix_is_part_of_the_name():
    rehearse_validation(runner_of(IoUMetric(prefix='val'), save_best='val/mIoU'))
    with pytest.raises(UserError, match='expected val/aAcc, val/mIoU, val/mAcc'):
        rehearse_validation(runner_of(IoUMetric(prefix='val'), save_best='mIoU'))


def test_metrics_that_write_are_left_out(tmp_path):
    metric = DumpResults(str(tmp_path / 'out.pkl'))
    rehearse_validation(runner_of(metric, save_best='theirs'))
    assert list(tmp_path.iterdir()) == []
    rehearse_validation(runner_of(IoUMetric(format_only=True), [sample(None)], 'theirs'))


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (
            dict(samples=[sample(None)]),
            'v0.png: no mask loaded; expected LoadAnnotations in the pipeline',
        ),
        (
            dict(samples=[sample((2, 3))]),
            'v0.png: a mask of 3×2 pixels and a prediction of 6×4; expected',
        ),
        (dict(metric=IoUMetric(iou_metrics='IoU')), r"iou_metrics=\['IoU'\]: expected some of"),
        (
            dict(samples=[[1], [1, 2]]),
            r'val_dataloader\.dataset: its first images do not load \(RuntimeError: each .* equal '
            r'size in mmengine/dataset/utils.py:\d+\); expected images for a batch \(MMSEG_CCT_',
        ),
    ],
)
def test_what_cannot_be_validated(arguments, expected):
    with pytest.raises(UserError, match=expected):
        rehearse_validation(runner_of(**arguments))


def test_an_error_of_the_users_own_code_keeps_its_traceback():
    with pytest.raises(TypeError, match='expected Tensor'):
        rehearse_validation(runner_of(samples=[dict(inputs=1)]))


class Pictures:
    """Stands in for mmengine's visualizer."""

    def __init__(self):
        self.kept, self._vis_backends = [], {'disk': self}

    def add_datasample(self, name, image, data_sample, show, **_):
        assert not show
        self.kept += list(self._vis_backends)
        for index in np.unique(data_sample.pred_sem_seg.data):
            data_sample.metainfo['palette'][index]


@pytest.mark.parametrize('draw', [True, False])
def test_the_visualizer_draws_and_keeps_nothing(draw, tmp_path, monkeypatch):
    pictures = Pictures()
    monkeypatch.setattr(SegVisualizationHook, '__init__', lambda self: None)
    hook = SegVisualizationHook()
    vars(hook).update(draw=draw, interval=50, show=True, wait_time=0, backend_args=None)
    hook._visualizer = pictures
    runner = runner_of()
    runner.iter, runner.hooks = 7, [*runner.hooks, hook]
    runner.val_dataloader.dataset[:] = [sample(path=str(tmp_path / 'v0.png'))]
    if draw:  # there is no such file
        with pytest.raises(FileNotFoundError):
            rehearse_validation(runner)
    cv2.imwrite(str(tmp_path / 'v0.png'), np.zeros((4, 6, 3), np.uint8))
    if draw:
        with pytest.raises(KeyError, match='palette'):
            rehearse_validation(runner)
    else:
        rehearse_validation(runner)
    assert pictures.kept == [] and list(pictures._vis_backends) == ['disk']
    assert (hook.interval, hook.show) == (50, True)


@pytest.mark.parametrize('score', ['F1.car', 'recall.car', 'IoU.car'])
def test_the_class_to_find_has_scores_even_if_the_first_image_lacks_it(score):
    rehearse_validation(runner_of(ClassIoUMetric(), save_best=score))
    expected = f"save_best='{score}': no validation mask shows this class; expected .*IoU.road"
    with pytest.raises(UserError, match=expected):
        rehearse_validation(runner_of(ClassIoUMetric(), save_best=score), absent=['car'])


def require_own_files(metrics, dataset):
    raise_problems(file_name_problems(metrics, dataset))


class Images(list):
    """Data infos of images."""

    def __init__(self, *images):
        super().__init__(dict(img_path=image) for image in images)

    get_data_info = list.__getitem__


@pytest.mark.parametrize('other', ['b/0.jpg', 'a/0.png'])
def test_two_images_of_one_name_are_refused(other, tmp_path):
    writes, reads = IoUMetric(output_dir=str(tmp_path)), IoUMetric()
    images = Images('a/0.jpg', 'a/1.jpg', other)
    require_own_files([reads], images)
    require_own_files([reads, writes], Images('a/0.jpg', 'b/1.jpg'))
    expected = rf'a/0\.jpg and {other} would both become 0\.png; expected .*predict\.py'
    with pytest.raises(UserError, match=expected):
        require_own_files([reads, writes], images)
    with pytest.raises(UserError, match=expected):  # in two sets that are one after the other
        parts = SimpleNamespace(datasets=[Images('a/0.jpg'), Images(other)])
        require_own_files([writes], parts)


def test_domains_have_folders_of_their_own(tmp_path):
    metric = MultiDomainIoUMetric(output_dir=str(tmp_path))
    domains = dict(x=Images('a/0.jpg'), y=Images('b/0.jpg'))
    require_own_files([metric], SimpleNamespace(domains=domains))
    domains['y'] = Images('b/0.jpg', 'c/0.jpg')
    with pytest.raises(UserError, match=r'b/0\.jpg and c/0\.jpg would both become 0\.png'):
        require_own_files([metric], SimpleNamespace(domains=domains))


def test_drawn_images_have_no_path(tmp_path):
    drawn = Images()
    drawn += [dict(seed=0), dict(seed=1)]
    require_own_files([IoUMetric(output_dir=str(tmp_path))], drawn)


def loader_of(folder, sizes, batch_size):
    for index, (width, height) in enumerate(sizes):
        Image.new('RGB', (width, height)).save(folder / f'{index}.png')
    settings = dict(
        type='mmseg.BaseSegDataset', metainfo=dict(classes=('a', 'b')), img_suffix='.png'
    )
    resize = dict(type='Resize', scale=(32, 32), keep_ratio=True)
    pipeline = [dict(type='LoadImageFromFile'), resize, dict(type='PackSegInputs')]
    with DefaultScope.overwrite_default_scope('mmseg'):
        dataset = DATASETS.build(
            dict(
                **settings,
                data_prefix=dict(img_path=str(folder)),
                pipeline=pipeline,
                test_mode=True,
            )
        )
    return DataLoader(dataset, batch_size)


@pytest.mark.parametrize(
    ('sizes', 'batch_size', 'found'),
    [
        ([(64, 32), (32, 16), (32, 32)], 2, None),  # resized alike, and the last one is alone
        ([(64, 32), (32, 32)], 1, None),
        ([(64, 32), (64, 32), (32, 32), (64, 32)], 2, '2.png of 32×32 and .*3.png of 32×16'),
    ],
)
def test_a_batch_has_one_size(sizes, batch_size, found, tmp_path):
    problems = list(batch_problems(loader_of(tmp_path, sizes, batch_size), 'val_dataloader'))
    if found is None:
        assert problems == []
    else:
        (problem,) = map(str, problems)
        assert re.search(rf'^val_dataloader.batch_size=2: .*{found} in one batch; expec', problem)
