from types import SimpleNamespace

import pytest
import world

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.labeled_record import LABELS, keep_labeled_images, read_labels


def test_the_labelled_images_of_a_training_are_kept(tmp_path, messages):
    world.write_images(tmp_path / 'data')
    settings = world.cct_config(tmp_path / 'data').train_dataloader.dataset

    validation = [0] * 3

    def start(resume=False):
        dataset = SemiSegDataset(**{k: v for k, v in settings.items() if k != 'type'})
        keep_labeled_images(
            SimpleNamespace(
                train_dataloader=SimpleNamespace(dataset=dataset),
                val_dataloader=SimpleNamespace(dataset=validation),
                val_loop=object(),
                work_dir=tmp_path,
                _resume=resume,
            )
        )
        return [path.rsplit('/')[-1] for path in read_labels(tmp_path).labeled]

    assert read_labels(tmp_path) is None
    assert start(resume=True) == start() == ['l0.png', 'l1.png', 'l2.png']
    (tmp_path / 'data/masks/u1.png').write_bytes((tmp_path / 'data/masks/l1.png').read_bytes())
    assert read_labels(tmp_path).unlabeled == 5
    with pytest.raises(UserError, match=r'--resume: 4 images are labelled, 3 were when .* another'):
        start(resume=True)
    assert start() == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    (tmp_path / 'data').rename(tmp_path / 'moved')
    for branch in ('labeled', 'unlabeled'):
        settings[branch].data_root = str(tmp_path / 'moved')
    assert start(resume=True) == ['l0.png', 'l1.png', 'l2.png', 'u1.png']
    assert not messages
    (tmp_path / 'moved/masks/l1.png').write_bytes((tmp_path / 'moved/masks/l2.png').read_bytes())
    (tmp_path / 'moved/images/u2.png').rename(tmp_path / 'moved/images/u9.png')
    validation.append(0)
    start(resume=True)
    (warning,) = messages
    assert 'since the training began, masks/l1.png and the names or sizes of the' in warning
    assert 'unlabelled images (4 then, 4 now) and the validation images (3 then, 4 now)' in warning
    for damaged in ('[]', '[' * 9999, '{"labeled": "a"}', '0', '{"lab'):
        (tmp_path / LABELS).write_text(damaged)
        with pytest.raises(UserError, match=r'labels\.json: damaged, .*; expected the labelled i'):
            start(resume=True)
