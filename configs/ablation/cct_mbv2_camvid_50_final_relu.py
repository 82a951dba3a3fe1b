# Decoders that end in a ReLU, as in the public code.
_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(decode_head=dict(final_activation=True), auxiliary_head=dict(final_activation=True))
