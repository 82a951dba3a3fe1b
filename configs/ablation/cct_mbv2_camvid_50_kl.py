_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(auxiliary_head=dict(loss_consistency=dict(type='KLConsistency')))
