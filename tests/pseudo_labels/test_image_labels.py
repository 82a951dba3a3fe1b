from pathlib import Path

import numpy as np
import pytest
from folders import save

from mmseg_cct.errors import UserError
from mmseg_cct.pseudo_labels.image_labels import (
    labels_from_masks,
    labels_from_table,
    write_annotations,
)

CLASSES = ('cat', 'dog')
IMAGES = {'a': Path('images/a.jpg'), 'more/b': Path('images/more/b.png')}


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('name,classes\na,cat\n', ''),
        ('image,labels\na,cat;bird\n', ', line 2'),
        ('image,labels\na,cat,dog\n', ', line 2'),
        ('image,labels\na,cat\na.jpg,dog\n', ', line 3'),
        ('image,labels\na,cat\nc.jpg,cat\n', ', line 3'),
    ],
)
def test_a_mistake_in_a_table_names_its_line(tmp_path, text, key):
    file = tmp_path / 'labels.csv'
    right = 'who,labels,image\nme,dog; cat,a\n,,more/b.png\n'
    file.write_text(right, encoding='utf-8-sig')  # as Excel writes it
    assert labels_from_table(file, IMAGES, CLASSES) == {'a': [0, 1], 'more/b': []}
    file.write_text(text)
    with pytest.raises(UserError) as raised:
        labels_from_table(file, IMAGES, CLASSES)
    assert str(raised.value.problems[0].key) == f'{file}{key}'


def test_masks_give_the_classes_after_mmsegs_mappings(tmp_path):
    def found(ids, mask_classes=CLASSES, **options):
        save(tmp_path / 'a.png', np.array(ids, np.uint8))
        return labels_from_masks(tmp_path, ['a'], mask_classes, CLASSES, **options)['a']

    assert found([[0, 0, 2], [255, 2, 0]], ('ground', *CLASSES)) == [1]
    assert found([[0, 0, 1], [1, 1, 0]], min_pixels=3) == [0, 1]
    assert found([[0, 0, 0], [1, 1, 1]], label_map={0: 1, 1: 1}, min_pixels=5) == [1]
    with pytest.raises(UserError, match='label id 3 outside the classes; expected 0 to 1'):
        found([[3]], reduce_zero_label=True)


def test_mmpretrain_reads_what_is_written(tmp_path):
    pytest.importorskip('mmpretrain', reason='its data set reads them (extra `weak`)')
    from mmpretrain.datasets import MultiLabelDataset

    write_annotations(
        tmp_path / 'new/labels.json', {'a': [0, 1], 'more/b': []}, IMAGES, 'images', CLASSES
    )
    dataset = MultiLabelDataset(str(tmp_path / 'new/labels.json'), data_prefix='images')
    assert tuple(dataset.metainfo['classes']) == CLASSES
    assert [dataset.get_cat_ids(index) for index in range(2)] == [[0, 1], []]
    assert dataset.get_data_info(1)['img_path'] == 'images/more/b.png'
