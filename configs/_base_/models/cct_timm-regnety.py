# Any timm network with feature maps; here RegNetY-3.2GF, dilated by timm to output stride 8. timm
# fetches the weights itself when the model is built. To load a file:
#   --cfg-options model.backbone.pretrained_cfg_overlay.file=FILE
# To load none, as for a checkpoint trained here: --cfg-options model.backbone.pretrained=False
_base_ = './cct.py'
model = dict(
    backbone=dict(
        type='mmseg.TIMMBackbone',
        model_name='regnety_032.ra_in1k',
        pretrained=True,
        pretrained_cfg_overlay=dict(),
        features_only=True,
        output_stride=8,
        out_indices=(4,),
    ),
    neck=dict(type='PSPNeck', in_channels=1512, channels=512),
)
