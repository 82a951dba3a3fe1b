_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(
    auxiliary_head=dict(
        perturbations=dict(
            vat=dict(num_decoders=0),
            dropout=dict(num_decoders=0),
            guided_cutout=dict(num_decoders=6),
            context_masking=dict(num_decoders=0),
            object_masking=dict(num_decoders=0),
            feature_drop=dict(num_decoders=0),
            feature_noise=dict(num_decoders=0),
        )
    )
)
