import pytest
import torch

from mmseg_cct.errors import UserError
from mmseg_cct.models.segmentors.pairs import require_pairs

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
