# The consistency loss looks at a random quarter of the feature positions.
_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(auxiliary_head=dict(position_fraction=0.25))
