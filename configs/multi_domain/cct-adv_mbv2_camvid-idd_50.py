_base_ = './cct_mbv2_camvid-idd_50.py'
model = dict(discriminator=dict(type='DomainDiscriminator', in_channels=128, scale=2e-2))
