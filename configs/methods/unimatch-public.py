# UniMatch as its public code runs it: labelled images and weak views are one batch in train mode,
# which also gives the targets, and CutMix pastes from a second batch.
_base_ = './unimatch.py'
model = dict(type='UniMatchPublicSegmentor')
train_dataloader = dict(dataset=dict(partners=True))
