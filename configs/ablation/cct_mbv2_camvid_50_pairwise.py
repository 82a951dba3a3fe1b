# With the pairwise term over eight random auxiliary decoders.
_base_ = '../cct/cct_mbv2_camvid_50.py'
model = dict(auxiliary_head=dict(loss_pairwise=dict(type='PairwiseVariance', loss_weight=1.0)))
