# IDD Lite, 7 classes, trained on crops of 112×160, as one of several domains: for a CPU.
# Names that begin with `__` stay in this file.
# (import_module, because mmengine would take `import mmengine` for a lazy-import config)
from importlib import import_module

__file = '{{ fileDirname }}/../datasets/idd_lite.py'
__data = import_module('mmengine').Config.fromfile(__file)

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
