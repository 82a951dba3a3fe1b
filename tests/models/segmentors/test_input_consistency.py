import copy

import tiny
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData

N, SIZE = 2, (32, 32)


def test_consistency_is_the_squared_distance_of_the_two_softmaxes():
    model, teacher = tiny.taught()
    batch = tiny.pair_batch(N)
    student = copy.deepcopy(model)
    losses = model(**batch, mode='loss')
    p = teacher(batch['inputs']['unlabeled']).softmax(1)
    q = student(batch['inputs']['unlabeled']).softmax(1)
    expected = F.mse_loss(q, p)
    torch.testing.assert_close(losses['aux.consistency'], expected.detach())
    torch.testing.assert_close(losses['aux.loss'], 30 * expected)


def test_padding_does_not_count():
    model, teacher = tiny.taught()
    batch = tiny.pair_batch(N)
    valid = torch.zeros(N, *SIZE, dtype=torch.bool)
    valid[0, :20, :7] = valid[1, :, :16] = True
    for sample, mask in zip(batch['data_samples']['unlabeled'], valid):
        sample.valid_mask = PixelData(data=mask[None])
    student = copy.deepcopy(model)
    losses = model(**batch, mode='loss')
    p = teacher(batch['inputs']['unlabeled']).softmax(1)
    q = student(batch['inputs']['unlabeled']).softmax(1)
    expected = (p - q).square().mean(1)[valid].mean()
    torch.testing.assert_close(losses['aux.consistency'], expected.detach())


def test_unlabelled_images_stay_out_of_the_heads_statistics():
    head = dict(
        type='FCNHead', in_channels=6, channels=4, num_classes=3, num_convs=1,
        norm_cfg=dict(type='BN'), in_index=-1,
    )  # fmt: skip
    model = tiny.mean_teacher(decode_head=head)
    model.set_teacher(tiny.mean_teacher(seed=9, decode_head=head).requires_grad_(False).eval())
    model(**tiny.pair_batch(N), mode='loss')
    assert model.decode_head.convs[0].bn.num_batches_tracked == 1
