_base_ = './cct_mbv2-jpu_camvid-idd_20.py'
model = dict(discriminator=dict(type='DomainDiscriminator', in_channels=64, scale=2e-2))
