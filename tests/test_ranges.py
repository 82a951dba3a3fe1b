import pytest
import tiny
from mmengine.registry import HOOKS
from mmseg.registry import DATASETS, MODELS

from mmseg_cct.errors import UserError

NAN = float('nan')
# component, argument, values outside, what is expected
RANGES = [
    ('FeatureDrop', 'num_decoders', [-1], 'a whole number from 0'),
    ('FeatureDrop', 'threshold_range', [(0.9, 0.6), (0.5,), (2, 3)], 'two values in order'),
    ('FeatureNoise', 'noise_range', [-0.1, 1.1], r'a number in \[0, 1\]'),
    ('GuidedCutout', 'side_ratio', [-0.1, 1.1], r'a number in \[0, 1\]'),
    ('SpatialDropout', 'drop_ratio', [-0.1, 1], r'a number in \[0, 1\)'),
    ('IntermediateVAT', 'epsilon', [-1, NAN], 'a finite number from 0'),
    ('IntermediateVAT', 'xi', [0, -1e-6], 'a positive number'),
    ('IntermediateVAT', 'norm_floor', [-1e-8], 'a finite number from 0'),
    ('PairwiseVariance', 'num_decoders', [1, 2.0], 'a whole number from 2'),
    ('MSEConsistency', 'reference_classes', ['21', 0], 'a whole number from 1, or None'),
    ('ConfidentCrossEntropy', 'threshold', [-0.1, 1.5, None], r'a number in \[0, 1\]'),
    ('ComplementaryDropout', 'keep_ratio', [-0.1, 1.1], r'a number in \[0, 1\]'),
    ('CutMix', 'prob', [1.5], r'a number in \[0, 1\]'),
    ('CutMix', 'area', [(0, 0.4), (0.5, 0.4)], r'two values in order, each a number in \(0, 1\]'),
    ('CutMix', 'aspect', [(-1, 2)], 'two values in order, each a positive number'),
    ('DomainDiscriminator', 'scale', [-2e-2], 'a number from 0'),
    ('PerturbedDecoderBank', 'position_fraction', [0, 1.01], r'a number in \(0, 1\]'),
    ('SemiSegDataset', 'labeled_per_unlabeled', [0, True], 'a whole number from 1'),
    ('TeacherHook', 'decay', [0, 1], r'a number in \(0, 1\)'),
    ('TeacherHook', 'evaluate', ['both'], 'one of student, teacher'),
    ('RampUpHook', 'schedule', ['expo'], 'one of .*exp, linear'),
    ('RampUpHook', 'fraction', [40], 'a number'),
]
REQUIRED = dict(
    DomainDiscriminator=dict(in_channels=4),
    PerturbedDecoderBank=dict(in_channels=4, num_classes=2),
    MeanTeacherSegmentor=tiny.mean_teacher_config(),
    RampUpHook=dict(attribute='x'),
    SemiSegDataset=dict(labeled={}),
)


@pytest.mark.parametrize(
    ('kind', 'name', 'value', 'expected'),
    [(kind, name, value, text) for kind, name, values, text in RANGES for value in values],
)
def test_a_value_out_of_range_is_named(kind, name, value, expected):
    registries = {'Hook': HOOKS, 'Dataset': DATASETS}
    registry = next((r for end, r in registries.items() if kind.endswith(end)), MODELS)
    with pytest.raises(UserError, match=rf'{kind}\.{name}=.*: expected {expected}'):
        registry.build({**REQUIRED.get(kind, {}), 'type': kind, name: value})
