# IDD Lite, 7 classes, trained on crops of 112×160, as one of several domains: for a CPU.
# Names that begin with `__` stay in this file.
# (no import statement: mmengine would take it for a lazy-import config)

__file = '{{ fileDirname }}/../datasets/idd_lite.py'
__data = __import__('mmengine').Config.fromfile(__file)

model = dict(
    data_preprocessor=dict(size=__data.crop_size),
    decode_head=dict(num_classes=len(__data.classes)),
    auxiliary_head=dict(
        num_classes=len(__data.classes),
        context_classes=__data.context_classes,
    ),
)
train = __data.train_dataloader.dataset
val = __data.val_dataloader.dataset
test = __data.test_dataloader.dataset
tta_pipeline = __data.tta_pipeline
