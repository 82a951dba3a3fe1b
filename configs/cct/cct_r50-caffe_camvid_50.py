# ResNet-50 in Caffe's layout (plain stem, stride in the first 1×1 of a block), for ImageNet weights
# with MMSeg's names that take RGB normalised as in `data_preprocessor`. They have no public URL:
# put the file where `checkpoint` says, or name it with
#   --cfg-options model.backbone.init_cfg.checkpoint=FILE
_base_ = './cct_r50_camvid_50.py'
model = dict(
    backbone=dict(
        type='ResNet', style='caffe', init_cfg=dict(checkpoint='data/weights/resnet50_caffe.pth')
    )
)
