# Your own images: data/mine/images, and masks of some of them in data/mine/masks (one channel of
# class ids, 255 = ignore); images and masks to validate on in data/mine/val. Scaled, cropped and
# flipped like VOC. A config names the `classes` at its top level.
_base_ = './crops.py'
mine = 'data/mine'
image_size, crop_size = (400, 400), (320, 320)

folder = dict(type='FolderDataset', image_dir=f'{mine}/images', mask_dir=f'{mine}/masks')
train_dataloader = dict(
    batch_size=10,
    dataset=dict(
        labeled=dict(**folder, subset='labeled'), unlabeled=dict(**folder, subset='unlabeled')
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='FolderDataset',
        image_dir=f'{mine}/val/images',
        mask_dir=f'{mine}/val/masks',
        subset='labeled',
    )
)
test_dataloader = val_dataloader
