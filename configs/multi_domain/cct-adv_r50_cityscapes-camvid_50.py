_base_ = './cct_r50_cityscapes-camvid_50.py'
model = dict(discriminator=dict(type='DomainDiscriminator', in_channels=512, scale=2e-2))
