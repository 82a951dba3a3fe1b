"""The paper's values, for settings that a config leaves out."""

# The auxiliary decoders of "CCT": each perturbation with its own default number of decoders.
PERTURBATIONS = dict(
    vat=dict(type='IntermediateVAT'),
    dropout=dict(type='SpatialDropout'),
    guided_cutout=dict(type='GuidedCutout'),
    context_masking=dict(type='ContextMasking'),
    object_masking=dict(type='ObjectMasking'),
    feature_drop=dict(type='FeatureDrop'),
    feature_noise=dict(type='FeatureNoise'),
)
