# CamVid at half its size, trained on crops of 120×160, as one of several domains: for a CPU.
# Names that begin with `__` stay in this file.
# (no import statement: mmengine would take it for a lazy-import config)

__data = __import__('mmengine').Config.fromfile('{{ fileDirname }}/../datasets/camvid_180x240.py')

model = dict(
    data_preprocessor=dict(size=__data.crop_size),
    decode_head=dict(num_classes=11),
    auxiliary_head=dict(
        num_classes=11,
        context_classes=__data.context_classes,
    ),
)
train = __data.train_dataloader.dataset
val = __data.val_dataloader.dataset
test = __data.test_dataloader.dataset
tta_pipeline = __data.tta_pipeline
