import shutil

from mmengine.config import Config

from mmseg_cct.apis.run import Run
from mmseg_cct.labelling.listed_images import images_of


def test_images_of_several_folders_keep_apart(photos):
    folder = dict(type='FolderDataset', image_dir=str(photos / 'a'), subset='unlabeled')
    other = shutil.copytree(photos / 'a', photos.parent / 'other')
    sets = [dict(folder), dict(folder, image_dir=str(other))]
    dataset = dict(unlabeled=dict(type='ConcatDataset', datasets=sets))
    run = Run(Config(dict(train_dataloader=dict(dataset=dataset))), '', 'x')
    listed = images_of(run, 'train_dataloader.dataset.unlabeled')
    names = {str(info['name']) for info in listed.values()}
    assert len(names) == 10 and {'other/1.png', 'photos/a/1.png'} < names
    assert images_of(run, 'val_dataloader.dataset') == {}
