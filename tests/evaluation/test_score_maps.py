"""Score maps, against the probabilities of the prediction itself."""

import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmseg.registry import DATASETS

from mmseg_cct.analysis.ranking import load_training_model
from mmseg_cct.evaluation.score_maps import resize_nearest, score_maps


@torch.no_grad()
def test_confidence_is_the_largest_probability(tiny_cct):
    config = Config.fromfile(tiny_cct.config)
    model = load_training_model(config, tiny_cct.checkpoint, 'cpu')
    item = DATASETS.build(config.test_dataloader.dataset)[0]
    scores, labels = score_maps(model, item, model.dataset_meta['classes'])
    (result,) = model.test_step(pseudo_collate([item]))
    probabilities = result.seg_logits.data.softmax(0)
    torch.testing.assert_close(scores['confidence'], probabilities.amax(0))
    assert torch.equal(labels, probabilities.argmax(0))


def test_labels_keep_their_type_and_no_new_ones_arise():
    labels = torch.tensor([[[0, 255], [3, 7]]])
    assert resize_nearest(labels, (4, 2)).tolist() == [[0, 255], [0, 255], [3, 7], [3, 7]]
    assert resize_nearest(labels, (2, 2)).dtype == labels.dtype
