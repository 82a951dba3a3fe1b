import pytest
from web import serve

from mmseg_cct.datasets import PairSampler, SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight.files import check_pairs


def test_images_behind_an_address_are_checked_and_loaded(tree):
    with serve(tree.root) as address:
        dirs = dict(img_path=f'{address}/images', seg_map_path=f'{address}/masks')
        here = dict(data_root='', data_prefix=dirs)
        dataset = SemiSegDataset(
            tree.config('labeled', ann_file=f'{tree.root}/labeled.txt', **here),
            tree.config('unlabeled', ann_file=f'{tree.root}/unlabeled.txt', **here),
        )
        check_pairs(dataset)
        item = dataset[PairSampler(dataset, seed=0).draw(0)]
        assert item['inputs']['labeled'].shape == item['inputs']['unlabeled'].shape == (3, 12, 12)
        tree.image('u0').unlink()
        with pytest.raises(UserError, match=rf'{address}/images/u0\.jpg: cannot be read \(.*404'):
            check_pairs(dataset)
