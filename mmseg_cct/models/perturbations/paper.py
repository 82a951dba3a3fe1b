"""The perturbations of "CCT" in the paper, by their names in configs."""

# Class, and name in the paper's figures. In this order a bank has its decoders; each class has its
# own default number of them.
_PAPER = dict(
    vat=('IntermediateVAT', 'I-VAT'),
    dropout=('SpatialDropout', 'DropOut'),
    guided_cutout=('GuidedCutout', 'G-Cutout'),
    context_masking=('ContextMasking', 'Con-Msk'),
    object_masking=('ObjectMasking', 'Obj-Msk'),
    feature_drop=('FeatureDrop', 'F-Drop'),
    feature_noise=('FeatureNoise', 'F-Noise'),
)
PERTURBATIONS = {name: dict(type=class_name) for name, (class_name, _) in _PAPER.items()}
TITLES = {name: title for name, (_, title) in _PAPER.items()}
