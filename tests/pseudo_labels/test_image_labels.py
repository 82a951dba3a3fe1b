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


def table(tmp_path, text):
    path = tmp_path / 'labels.csv'
    path.write_text(text, encoding='utf-8-sig')  # as Excel writes it
    return path


class TestTable:
    @pytest.mark.parametrize(
        ('text', 'expected'),
        [
            ('image,labels\na.jpg,dog; cat\nmore/b,\n', {'a': [0, 1], 'more/b': []}),
            ('who,labels,image\nme,dog,a.jpg\n', {'a': [1]}),
        ],
    )
    def test_reads_names_with_and_without_extension(self, tmp_path, text, expected):
        assert labels_from_table(table(tmp_path, text), IMAGES, CLASSES) == expected

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
    def test_a_mistake_names_its_line(self, tmp_path, text, key):
        file = table(tmp_path, text)
        with pytest.raises(UserError) as raised:
            labels_from_table(file, IMAGES, CLASSES)
        assert str(raised.value.problems[0].key) == f'{file}{key}'


class TestMasks:
    @pytest.mark.parametrize(
        ('ids', 'options', 'expected'),
        [
            ([[0, 0, 2], [255, 2, 0]], dict(mask_classes=('ground', *CLASSES)), [1]),
            ([[0, 0, 1], [1, 1, 0]], dict(min_pixels=3), [0, 1]),
            ([[11, 0]], dict(label_map={11: 255}), [0]),
            ([[0, 2, 255]], dict(reduce_zero_label=True), [1]),
            ([[0, 0, 0], [1, 1, 1]], dict(label_map={0: 1, 1: 1}, min_pixels=5), [1]),
        ],
    )
    def test_gives_the_classes_after_mmsegs_mappings(self, tmp_path, ids, options, expected):
        save(tmp_path / 'a.png', np.array(ids, np.uint8))
        options = dict(mask_classes=CLASSES) | options
        assert labels_from_masks(tmp_path, ['a'], classes=CLASSES, **options) == {'a': expected}

    def test_an_unknown_id_is_named(self, tmp_path):
        save(tmp_path / 'a.png', np.array([[3]], np.uint8))
        with pytest.raises(UserError, match=r'label id 3 outside the classes; expected 0 to 1'):
            labels_from_masks(tmp_path, ['a'], CLASSES, CLASSES, reduce_zero_label=True)


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
