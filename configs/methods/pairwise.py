# CCT with the pairwise term L_pw.
model = dict(auxiliary_head=dict(loss_pairwise=dict(type='PairwiseVariance', loss_weight=1.0)))
