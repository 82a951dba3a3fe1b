import copy

import pytest
import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData

from mmseg_cct.errors import UserError
from mmseg_cct.models.layers.cutmix import paste

SIZE = (32, 32)


class LeftHalf(torch.nn.Module):
    def forward(self, images):
        boxes = torch.zeros(len(images), 1, *images.shape[-2:], dtype=torch.bool)
        boxes[..., :16] = True
        return boxes


def make_model(**kwargs):
    return tiny.build(type='SelfTrainingSegmentor', auxiliary_head=None, **kwargs).train()


def make_batch(with_masks=True):
    batch = tiny.pair_batch(2, SIZE)
    torch.manual_seed(1)
    for sample in batch['data_samples']['unlabeled'] if with_masks else ():
        mask = torch.randint(0, 3, (1, *SIZE))
        mask[:, 5:9] = 255
        sample.pseudo_sem_seg = PixelData(data=mask)
    batch['inputs']['unlabeled_strong_0'] = -batch['inputs']['unlabeled']
    batch['data_samples']['unlabeled_strong_0'] = batch['data_samples']['unlabeled']
    return batch


@pytest.mark.parametrize('mixed', [False, True])
def test_the_strong_view_learns_the_teachers_mask(mixed):
    model = make_model(pseudo_weight=0.5)
    data = make_batch()
    student = copy.deepcopy(model)
    model.cutmix = LeftHalf() if mixed else None
    losses = model(**data, mode='loss')

    labeled = student.decode_head.forward(student.extract_feat(data['inputs']['labeled']))
    truth = torch.cat([sample.gt_sem_seg.data for sample in data['data_samples']['labeled']])
    view = data['inputs']['unlabeled_strong_0']
    masks = torch.stack(
        [sample.pseudo_sem_seg.data for sample in data['data_samples']['unlabeled']]
    )
    if mixed:
        view, masks = (paste(values, LeftHalf()(view)) for values in (view, masks))
    strong = student.decode_head.forward(student.extract_feat(view))
    entropy = F.cross_entropy(strong, masks.squeeze(1), ignore_index=255, reduction='none')
    torch.testing.assert_close(losses['decode.loss_ce'], F.cross_entropy(labeled, truth))
    torch.testing.assert_close(losses['pseudo.decode.loss_ce'], 0.5 * entropy.mean())
    assert losses['pseudo.decode.acc_seg'] > 1  # a share in percent, not weighted


def test_samples_without_masks_are_refused():
    with pytest.raises(UserError, match=r'gives no pseudo masks; .* tools/self_train\.py'):
        make_model()(**make_batch(with_masks=False), mode='loss')
