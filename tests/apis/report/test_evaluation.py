import cv2
import numpy as np
import pytest
import world
from mmengine.runner import Runner

from mmseg_cct.apis.report.evaluation import Evaluation, evaluate, predict_test_images
from mmseg_cct.apis.run import Run
from mmseg_cct.errors import UserError


def test_evaluation_agrees_with_the_runners_own(trained, tmp_path):
    run = Run.open(trained.work_dir)
    config = run.config.copy()
    config.work_dir, config.load_from = str(tmp_path), run.checkpoint
    config.experiment_name = world.experiment()
    expected = Runner.from_cfg(config).test()['mIoU']
    evaluation = evaluate(run)
    assert np.nanmean(evaluation.iou) * 100 == pytest.approx(expected, abs=0.01)


def test_the_iou_of_an_image_is_that_of_its_picture(trained):
    order = dict(type='InfiniteSampler', shuffle=True)  # whatever it was tested in
    loader = dict(sampler=order, drop_last=True, num_workers=10**9)
    run = Run.open(trained.work_dir, options=dict(test_dataloader=loader))
    evaluation = evaluate(run)
    assert len(evaluation.image_miou) == 3
    for index, picture in zip((2, 0), predict_test_images(run, (2, 0))):
        by_class = [
            ((picture.truth == c) & (picture.prediction == c)).sum()
            / ((picture.truth == c) | (picture.prediction == c)).sum()
            for c in np.unique(picture.truth)
        ]
        assert evaluation.image_miou[index] == pytest.approx(np.mean(by_class))
        shown = np.bincount(picture.truth.ravel(), minlength=3)
        assert evaluation.confusion[index].sum(1).tolist() == shown.tolist()


def other_classes(run, data):
    run.content['meta']['dataset_meta'] = dict(classes=world.CLASSES[::-1])


def void_masks(run, data):
    for path in data.glob('val_masks/*.png'):
        cv2.imwrite(str(path), np.full((32, 40), 255, np.uint8))


@pytest.mark.parametrize(
    ('edit', 'key'),
    [(other_classes, 'iter_6.pth'), (void_masks, 'CCT: test_dataloader.dataset')],
)
def test_a_test_set_that_gives_no_iou_is_named(cct, trained, edit, key):
    run = Run.open(cct.file, trained.checkpoint, name='CCT')
    edit(run, cct.data)
    with pytest.raises(UserError) as error:
        evaluate(run)
    assert error.value.problems[0].key.endswith(key)


def test_scores_of_a_confusion_by_hand():
    """Two images, three classes: the last one in no mask, but predicted on two pixels."""
    first, second = [[3, 1, 0], [0, 0, 0], [0, 0, 0]], [[1, 0, 1], [2, 2, 1], [0, 0, 0]]
    found = Evaluation(np.array([first, second]))
    np.testing.assert_allclose(found.iou, [4 / 8, 2 / 6, 0])  # as MMSeg's IoUMetric
    assert found.shown.tolist() == [True, True, False]
    np.testing.assert_allclose(found.image_miou, [3 / 4, (1 / 4 + 2 / 5) / 2])
    assert found.confusions(2) == [(1, 0, 2 / 5), (0, 1, 1 / 5)]
