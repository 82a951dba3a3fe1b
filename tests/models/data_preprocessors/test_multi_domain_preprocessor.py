import pytest
import torch
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmseg_cct.errors import UserError
from mmseg_cct.models.data_preprocessors.multi_domain_preprocessor import domain_of

KNOWN = ('camvid', 'idd')


def samples(*domains):
    metas = [{} if domain is None else dict(domain=domain) for domain in domains]
    return [SegDataSample(metainfo=dict(meta, ori_shape=(8, 8))) for meta in metas]


@pytest.mark.parametrize(
    'data_samples',
    [
        None,
        samples('idd', None),
        samples('idd', 'camvid'),
        dict(labeled=samples('idd'), unlabeled=samples('camvid')),
        samples('kitti'),
    ],
)
def test_a_batch_of_no_one_known_domain_is_an_error(data_samples):
    with pytest.raises(UserError):
        domain_of(data_samples, KNOWN)


def test_each_domain_has_its_own_normalisation_and_size():
    settings = dict(type='BranchPreprocessor', std=[2.0] * 3, seg_pad_val=255)
    domains = dict(
        camvid=dict(settings, mean=[10.0] * 3, size=(8, 16)),
        idd=dict(settings, mean=[20.0] * 3, size=(12, 8)),
    )
    preprocessor = MODELS.build(dict(type='MultiDomainPreprocessor', domains=domains))
    image = torch.full((3, 8, 8), 30, dtype=torch.uint8)
    for name, size, value in (('camvid', (8, 16), 10.0), ('idd', (12, 8), 5.0)):
        data = dict(
            inputs=dict(labeled=[image], unlabeled=[image]),
            data_samples=dict(labeled=samples(name), unlabeled=samples(name)),
        )
        inputs = preprocessor(data, training=True)['inputs']
        for branch in inputs.values():
            assert branch.shape == (1, 3, *size)
            assert (branch[..., :8, :8] == value).all()
        plain = preprocessor(dict(inputs=[image], data_samples=samples(name)))
        assert plain['inputs'].shape == (1, 3, 8, 8) and (plain['inputs'] == value).all()
