"""Score maps, against the probabilities of the prediction itself."""

import pytest
import tiny
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmseg.registry import DATASETS, MODELS

from mmseg_cct.analysis.ranking import load_training_model
from mmseg_cct.evaluation.score_maps import resize_nearest, score_maps


def with_a_bank(config, checkpoint):
    return load_training_model(config, checkpoint, 'cpu')


def with_a_stride_alone(config, checkpoint):
    """A model of MMSeg whose logits are an eighth of its inputs' size."""
    head = dict(type='FCNHead', in_channels=6, channels=4, num_convs=1, num_classes=3)
    settings = tiny.model_config(type='EncoderDecoder', decode_head=dict(head, align_corners=True))
    settings.pop('auxiliary_head')
    return MODELS.build(settings).eval()


@pytest.mark.parametrize('build', [with_a_bank, with_a_stride_alone])
@torch.no_grad()
def test_scores_are_those_of_the_prediction(tiny_cct, build):
    config = Config.fromfile(tiny_cct.config)
    model = build(config, tiny_cct.checkpoint)
    item = DATASETS.build(config.test_dataloader.dataset)[0]
    scores, labels = score_maps(model, item, ('sky', 'road', 'car'))
    (result,) = model.test_step(pseudo_collate([item]))
    probabilities = result.seg_logits.data.softmax(0)
    torch.testing.assert_close(scores['confidence'], probabilities.amax(0))
    assert torch.equal(labels, probabilities.argmax(0))


def test_labels_keep_their_type_and_no_new_ones_arise():
    labels = torch.tensor([[[0, 255], [3, 7]]])
    assert resize_nearest(labels, (4, 2)).tolist() == [[0, 255], [0, 255], [3, 7], [3, 7]]
    assert resize_nearest(labels, (2, 2)).dtype == labels.dtype


def test_a_pixel_takes_the_label_at_its_centre():
    assert resize_nearest(torch.arange(6)[None, None], (1, 2)).tolist() == [[1, 4]]
