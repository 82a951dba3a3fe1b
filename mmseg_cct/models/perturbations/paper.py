"""The perturbations of "CCT" in the paper, by their names in configs."""

# In this order a bank has its decoders; each class has its own default number of them.
PERTURBATIONS = dict(
    vat=dict(type='IntermediateVAT'),
    dropout=dict(type='SpatialDropout'),
    guided_cutout=dict(type='GuidedCutout'),
    context_masking=dict(type='ContextMasking'),
    object_masking=dict(type='ObjectMasking'),
    feature_drop=dict(type='FeatureDrop'),
    feature_noise=dict(type='FeatureNoise'),
)
