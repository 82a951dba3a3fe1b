# The network of the authors' public code and the settings of its perturbations, for its checkpoints
# that tools/convert_checkpoint.py has converted.
_base_ = '../cct/cct_r50_voc_1464.py'
model = dict(
    # a stem of 64, 64 and 128 channels, MMSeg's has 32, 32 and 64; no weights in the model zoo fit,
    # so a training starts from a converted checkpoint (load_from) or random weights
    backbone=dict(stem_channels=128, init_cfg=None),
    # a ReLU also after the last sub-pixel convolution, and random kernels to start from
    decode_head=dict(final_activation=True, kernel_init='kaiming'),
    auxiliary_head=dict(
        final_activation=True,
        kernel_init='kaiming',
        # norm_floor: the public formula in exact arithmetic; its float32 is 13 to 143 times weaker
        perturbations=dict(
            vat=dict(norm_floor=1e-8), feature_drop=dict(threshold_range=(0.7, 0.9))
        ),
    ),
)
