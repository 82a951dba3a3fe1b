# Only pixels whose largest main probability is above β count.
_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(auxiliary_head=dict(loss_consistency=dict(confidence_threshold=0.5)))
