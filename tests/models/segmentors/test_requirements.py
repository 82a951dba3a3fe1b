import pytest
import tiny
import torch
from mmseg.registry import MODELS

from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.requirements import require_pairs

IMAGES = torch.zeros(1, 3, 2, 2)


def test_images_by_branch_pass():
    require_pairs(dict(labeled=IMAGES, unlabeled=IMAGES), 'CCTSegmentor')


def test_images_of_one_branch_are_an_error_that_names_the_model():
    with pytest.raises(UserError) as error:
        require_pairs(IMAGES, 'CCTSegmentor')
    assert str(error.value) == (
        'train_dataloader.dataset: CCTSegmentor trains on pairs of a labelled and an unlabelled '
        'image; expected a SemiSegDataset with both'
    )


@pytest.mark.parametrize('kind', ['CCTSegmentor', 'MeanTeacherSegmentor'])
def test_one_output_for_two_classes_is_an_error(kind):
    head = dict(type='FCNHead', in_channels=6, channels=4, num_classes=2, out_channels=1)
    config = tiny.model_config(type=kind)
    config['decode_head'] = dict(head, threshold=0.3, norm_cfg=dict(type='BN'))
    if kind == 'MeanTeacherSegmentor':
        config.update(auxiliary_head=None, loss_consistency=dict(type='MSEConsistency'))
    with pytest.raises(UserError, match=r'out_channels=1: expected one output for each class'):
        MODELS.build(config)
