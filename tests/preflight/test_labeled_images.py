from types import SimpleNamespace

import pytest
import world

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.engine.labels_record import LABELS, read_labels
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.labeled_images import keep_labeled_images


def test_a_training_resumes_with_the_labelled_images_that_it_began_with(tmp_path, messages):
    world.write_images(tmp_path / 'data')
    settings = world.cct_config(tmp_path / 'data').train_dataloader.dataset

    def start(resume=False, validated='labeled'):
        dataset = SemiSegDataset(**{k: v for k, v in settings.items() if k != 'type'})
        loader = SimpleNamespace(dataset=dataset)
        val_loop = SimpleNamespace(dataloader=SimpleNamespace(dataset=getattr(dataset, validated)))
        run = dict(train_dataloader=loader, val_loop=val_loop, work_dir=tmp_path, _resume=resume)
        keep_labeled_images(SimpleNamespace(**run))
        return [path.rsplit('/')[-1] for path in read_labels(tmp_path).labeled]

    assert read_labels(tmp_path) is None
    assert start(resume=True) == start() == ['l0.png', 'l1.png', 'l2.png']
    (tmp_path / 'data/masks/u1.png').write_bytes((tmp_path / 'data/masks/l1.png').read_bytes())
    assert read_labels(tmp_path).unlabeled == 5
    with pytest.raises(UserError, match='4 images are labelled, 3 were when') as caught:
        start(resume=True)
    assert caught.value.problems[0].key == '--resume'
    assert start() == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    assert not messages
    start(resume=True, validated='unlabeled')
    assert messages.pop().startswith('--resume: other images validate')
    image = tmp_path / 'data/images/u2.png'
    image.rename(tmp_path / 'data/images/v2.png')
    start(resume=True)
    assert messages.pop().startswith('--resume: other unlabelled images')
    (tmp_path / 'data/images/v2.png').rename(image)
    (tmp_path / 'data').rename(tmp_path / 'moved')
    for branch in ('labeled', 'unlabeled'):
        settings[branch].data_root = str(tmp_path / 'moved')
    assert start(resume=True) == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    assert not messages
    (tmp_path / 'moved/images/l0.png').rename(tmp_path / 'moved/images/l9.png')
    (tmp_path / 'moved/masks/l0.png').rename(tmp_path / 'moved/masks/l9.png')
    with pytest.raises(UserError, match='4 images are labelled, 4 were'):
        start(resume=True)


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / LABELS).write_text('{"lab')
    with pytest.raises(UserError) as caught:
        read_labels(tmp_path)
    assert caught.value.problems[0].key == str(tmp_path / LABELS)
