"""Malformed files of image-level labels."""

import json

import pytest
from mmengine.registry import DefaultScope

from mmseg_cct.errors import UserError, raise_problems
from mmseg_cct.preflight.image_labels import annotation_problems


def check_file(folder):
    dataset = dict(type='MultiLabelDataset', data_root=str(folder), ann_file='labels.json')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        raise_problems(annotation_problems(dataset))


def check(tmp_path, **changes):
    entry = dict(img_path='a.png', gt_label=[0, 1])
    content = dict(metainfo=dict(classes=['x', 'y']), data_list=[entry]) | changes
    (tmp_path / 'labels.json').write_text(json.dumps(content))
    check_file(tmp_path)


def test_takes_what_fits(tmp_path):
    check(tmp_path)
    check(tmp_path, data_list=[dict(img_path='a.png', gt_label=[])])


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (dict(metainfo=None), r'labels\.json: no metainfo; expected image-level labels'),
        (dict(metainfo={}), r'metainfo\.classes=None: expected the names of the classes'),
        (dict(metainfo=dict(classes=[])), r'metainfo\.classes=\[\]: expected the names of'),
        (dict(metainfo=dict(classes=[1])), r'metainfo\.classes=\[1\]: expected the names of'),
        (dict(data_list={}), r'labels\.json: no data_list; expected image-level labels'),
        (dict(data_list=['a.png']), r'data_list\[0\]\.img_path=None: expected a path'),
        (dict(data_list=[dict(img_path=3)]), r'data_list\[0\]\.img_path=3: expected a path'),
        (
            dict(data_list=[dict(img_path='a', gt_label=1)]),
            r'data_list\[0\]\.gt_label=1: expected a list of class ids',
        ),
    ],
)
def test_malformed(tmp_path, changes, message):
    with pytest.raises(UserError, match=message):
        check(tmp_path, **changes)


@pytest.mark.parametrize('label', [-1, 2, 'x', 0.5, True])
def test_no_class_id(tmp_path, label):
    with pytest.raises(UserError, match=r'gt_label=\[.*is no class id; expected 0 to 1$'):
        check(tmp_path, data_list=[dict(img_path='a', gt_label=[label])])


@pytest.mark.parametrize('text', ['', '{"metainfo": {', '[' * 100000])
def test_no_json(tmp_path, text):
    (tmp_path / 'labels.json').write_text(text)
    with pytest.raises(UserError, match=r'labels\.json: not JSON \(.*\); expected'):
        check_file(tmp_path)


def test_missing(tmp_path):
    with pytest.raises(UserError, match=r'labels\.json: no such file; expected the image-lev'):
        check_file(tmp_path)


def test_each_wrong_entry_is_named(tmp_path):
    with pytest.raises(UserError) as error:
        check(tmp_path, data_list=[{}, dict(img_path='a', gt_label=[]), dict(img_path='b')])
    assert [line.split('=')[0].split('.')[-2:] for line in str(error.value).splitlines()] == [
        ['json: data_list[0]', 'img_path'],
        ['json: data_list[2]', 'gt_label'],
    ]
