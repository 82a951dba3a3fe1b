# FixMatch as in UniMatch's public code: labelled images and weak views are one batch in train mode,
# which also gives the targets, and CutMix pastes from a second batch.
_base_ = './fixmatch.py'
model = dict(joint_batch=True)
train_dataloader = dict(dataset=dict(partners=True))
