import cv2
import numpy as np
import pytest
from mmengine.logging import MMLogger
from mmseg.registry import DATASETS
from PIL import Image
from trees import LABELED_PIPELINE

from mmseg_cct.datasets import SemiSegDataset
from mmseg_cct.errors import UserError
from mmseg_cct.preflight import files
from mmseg_cct.preflight.files import check_pairs, look_at_evaluation_data
from mmseg_cct.utils import shares
from mmseg_cct.utils.image_files import ORIENTATION


def _check(labeled, unlabeled=None):
    check_pairs(SemiSegDataset(labeled, unlabeled))


def _error(tree, **kwargs):
    with pytest.raises(UserError) as caught:
        _check(tree.config('labeled', **kwargs), tree.config('unlabeled'))
    return str(caught.value)


def _write_mask(tree, ids, name='l1'):
    Image.fromarray(np.asarray(ids)).save(tree.mask(name))


class TestLabeledImages:
    def test_id_outside_the_classes(self, tree):
        ids = np.zeros((16, 24), np.uint8)
        ids[3, 4], ids[5, 6] = 3, 9
        _write_mask(tree, ids)
        assert _error(tree) == (
            f'{tree.mask("l1")}: label id 3, 9 outside the classes; expected 0 to 2, or 255 where '
            'ignored'
        )

    def test_a_class_that_is_missing_in_many_masks_is_one_line(self, tree):
        for name in ('l1', 'l2'):
            _write_mask(tree, np.full((16, 24), 3, np.uint8), name)
        assert _error(tree) == (
            f'{tree.mask("l1")} and 1 more: label id 3 outside the classes; expected 0 to 2, or '
            '255 where ignored; is a class missing?'
        )

    def test_many_ids_outside_the_classes(self, tree):
        _write_mask(tree, np.arange(16 * 24, dtype=np.uint16).reshape(16, 24).astype(np.uint8))
        assert 'label id 3, 4, 5, 6, 7 and more outside the classes' in _error(tree)

    def test_16_bit_id_that_wraps_to_a_class(self, tree):
        _write_mask(tree, np.full((16, 24), 257, np.uint16))
        assert 'label id 257 outside the classes' in _error(tree)

    def test_all_bad_files_are_named_in_their_order(self, tree):
        _write_mask(tree, np.full((16, 24), 7, np.uint8), 'l2')
        tree.image('l1').unlink()
        tree.image('u3').write_bytes(b'no image')
        lines = _error(tree).splitlines()
        files = [tree.image('l1'), tree.mask('l2'), tree.image('u3')]
        assert [line.split(':')[0] for line in lines] == [str(file) for file in files]

    def test_few_files_wait_at_a_time(self, tree, monkeypatch):
        monkeypatch.setattr(files, '_FILES_AT_ONCE', 1)
        _write_mask(tree, np.full((16, 24), 7, np.uint8), 'l2')  # in the second lot
        assert _error(tree).startswith(str(tree.mask('l2')))
        seen = []
        monkeypatch.setattr(files, 'read_mask', lambda file, *_: seen.append(file))
        with pytest.raises(AttributeError):  # of the first file, before the second one is read
            _check(tree.config('labeled'), tree.config('unlabeled'))
        assert seen == [str(tree.mask('l0'))]

    def test_ignored_and_palette_masks_pass(self, tree):
        mask = Image.fromarray(np.array([[0, 1, 2, 255]] * 16, np.uint8).repeat(6, 1), mode='P')
        mask.putpalette([7] * 768)
        mask.save(tree.mask('l1'))
        _check(tree.config('labeled'))

    def test_ids_are_mapped_first(self, tree):
        _write_mask(tree, np.full((16, 24), 3, np.uint8))
        _check(tree.config('labeled', reduce_zero_label=True))
        _write_mask(tree, np.full((16, 24), 4, np.uint8))
        assert _error(tree, reduce_zero_label=True).endswith(
            'label id 4 outside the classes; expected 0 to 2, or 255 where ignored, after '
            'label_map or reduce_zero_label'
        )

    def test_no_mask(self, tree):
        tree.mask('l1').unlink()
        assert _error(tree) == (
            f'{tree.image("l1")}: no mask for this labelled image; expected {tree.mask("l1")}'
        )

    def test_no_folder_of_masks_named(self, tree):
        assert _error(tree, data_prefix=dict(img_path='images')).splitlines()[0] == (
            f'{tree.image("l0")}: no mask is named for this labelled image; expected a data set '
            'with data_prefix.seg_map_path'
        )

    def test_sizes_that_differ(self, tree):
        _write_mask(tree, np.zeros((24, 16), np.uint8))
        assert _error(tree) == (
            f'{tree.mask("l1")}: 16×24 pixels; expected 24×16, the size of its image '
            f'{tree.image("l1")}'
        )

    def test_a_side_of_one_pixel(self, tree):
        cv2.imwrite(str(tree.image('l1')), np.zeros((1, 24, 3), np.uint8))
        _write_mask(tree, np.zeros((1, 24), np.uint8))
        assert '24×1 pixels; expected 2 or more on each side' in _error(tree)

    def test_image_turned_by_its_exif_tag(self, tree):
        exif = Image.Exif()
        exif[0x0112] = 6
        with Image.open(tree.image('l1')) as image:
            image.save(tree.image('l1'), exif=exif)
        assert cv2.imread(str(tree.image('l1'))).shape == (24, 16, 3)
        assert 'pixels; expected 16×24, the size of its image' in _error(tree)
        _write_mask(tree, np.zeros((24, 16), np.uint8))
        _check(tree.config('labeled'))

    def test_a_mask_is_read_as_the_pipeline_reads_it(self, tree):
        _write_mask(tree, np.zeros((16, 24), bool))
        _write_mask(tree, np.ones((16, 24), bool), 'l2')
        _check(tree.config('labeled'))
        load = [
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', imdecode_backend='cv2'),
        ]
        assert _error(tree, pipeline=load).startswith(
            f"{tree.mask('l2')}: imdecode_backend='cv2' reads other ids"
        )

    @pytest.mark.parametrize('tag', [1, 3, 6])
    def test_images_that_loading_may_turn_away_from_their_masks(self, tree, messages, tag):
        exif = Image.Exif()
        exif[ORIENTATION] = tag
        for name in ('l1', 'l2'):
            with Image.open(tree.image(name)) as image:
                image.resize((16, 16)).save(tree.image(name), exif=exif)
            _write_mask(tree, np.resize(np.uint8([0, 1, 2]), (16, 16)), name)
        line = (
            f'2 images are turned by their EXIF tags, and their sizes do not tell whether their '
            f'masks are; the first is {tree.image("l1")}; expected masks of the turned images'
        )
        _check(tree.config('labeled'))
        assert messages == ([] if tag == 1 else [f'labeled: {line}'])
        as_it_is = dict(type='LoadImageFromFile', color_type='color_ignore_orientation')
        for load in (dict(type='LoadImageFromFile'), as_it_is):
            pipeline = [load, *LABELED_PIPELINE[1:]]
            look_at_evaluation_data(
                DATASETS.build(tree.config('labeled', pipeline=pipeline)), 'val'
            )
        assert messages[1:] == ([] if tag == 1 else [f'val: {line}'])

    @pytest.mark.parametrize('moving', LABELED_PIPELINE[2:5], ids=lambda step: step['type'])
    def test_a_mask_that_is_loaded_after_its_image_moved(self, tree, moving):
        load, load_mask, *_ = LABELED_PIPELINE
        _check(tree.config('labeled', pipeline=[load, load_mask, moving]))
        colours = dict(type='PhotoMetricDistortion')
        _check(tree.config('labeled', pipeline=[load, colours, load_mask, moving]))
        assert _error(tree, pipeline=[load, moving, load_mask]) == (
            f'labeled.pipeline: {moving["type"]} before LoadAnnotations moves the image and not '
            'its mask; expected LoadAnnotations before it'
        )

    def test_more_classes_than_a_mask_can_name(self, tree):
        names = tuple(map(str, range(257)))
        _check(tree.config('labeled', metainfo=dict(classes=names[1:])))
        assert _error(tree, metainfo=dict(classes=names)) == (
            'labeled: 257 classes; expected at most 256, which LoadAnnotations tells apart'
        )

    def test_colour_mask(self, tree):
        _write_mask(tree, np.zeros((16, 24, 3), np.uint8))
        assert _error(tree).startswith(f'{tree.mask("l1")}: a mask of Pillow mode RGB; expected')

    @pytest.mark.parametrize('cut', [0, 20, 300])
    def test_unreadable_image(self, tree, cut):
        tree.image('l1').write_bytes(tree.image('l1').read_bytes()[:cut])
        assert _error(tree).startswith(f'{tree.image("l1")}: cannot be read (')

    def test_unreadable_mask(self, tree):
        tree.mask('l1').write_bytes(tree.mask('l1').read_bytes()[:60])
        assert _error(tree).startswith(f'{tree.mask("l1")}: cannot be read (')

    def test_missing_image(self, tree):
        tree.image('l1').unlink()
        assert _error(tree) == f'{tree.image("l1")}: no such file; expected the image there'


class TestUnlabeledImages:
    def test_unreadable_image(self, tree):
        tree.image('u3').write_bytes(b'no image')
        assert _error(tree).startswith(f'{tree.image("u3")}: cannot be read (')

    def test_missing_image(self, tree):
        tree.image('u3').unlink()
        assert _error(tree) == f'{tree.image("u3")}: no such file; expected the image there'


class TestAllLabels:
    @staticmethod
    def _write(tree, *masks):
        for name, ids in zip(tree.labeled_names, masks):
            _write_mask(tree, np.resize(np.uint8(ids), (16, 24)), name)

    def test_all_void(self, tree):
        self._write(tree, [255], [255], [255])
        assert _error(tree) == (
            'labeled: all 3 masks hold only 255 (ignored); expected class ids from 0 to 2'
        )

    def test_all_void_after_the_mapping(self, tree):
        self._write(tree, [0], [0, 255], [0])
        assert 'all 3 masks hold only 255' in _error(tree, reduce_zero_label=True)

    def test_some_void(self, tree, messages):
        self._write(tree, [255], [0, 1, 2], [255])
        _check(tree.config('labeled'))
        assert messages == [
            'labeled: 2 of 3 masks are 255 (ignored) alone; expected a labelled pixel in each'
        ]

    def test_class_that_never_occurs(self, tree, messages):
        self._write(tree, [0, 2, 255], [2], [0])
        _check(tree.config('labeled'))
        assert messages == [
            'labeled: thing (1 of 3 classes) in none of the 3 masks; expected each class in one'
        ]

    def test_every_class_in_some_mask(self, tree, messages):
        self._write(tree, [0], [1], [2])
        _check(tree.config('labeled'))
        assert messages == []

    def test_black_and_white_masks(self, tree):
        self._write(tree, [0, 255], [0], [255])
        assert _error(tree, metainfo=dict(classes=('ground', 'thing'))) == (
            'labeled: the 3 masks hold 0 and 255 alone, and 255 is ignored, so that thing never '
            'occurs; expected 0 for ground and 1 for thing (replace 255 by 1)'
        )

    def test_black_and_white_masks_of_three_classes(self, tree, messages):
        self._write(tree, [0, 255], [0], [255])
        _check(tree.config('labeled', metainfo=dict(classes=('ground', 'thing', 'other'))))
        assert messages[0] == (
            'labeled: the 3 masks hold 0 and 255 alone, and 255 is ignored, so that ground alone '
            'occurs; expected ids from 0 to 2 (replace 255 by the id of its class, if it is one)'
        )

    def test_one_class_and_ignored_pixels_after_the_mapping(self, tree, messages):
        self._write(tree, [0, 1], [1], [1])
        config = tree.config(
            'labeled', metainfo=dict(classes=('ground', 'thing')), reduce_zero_label=True
        )
        _check(config)
        assert len(messages) == 1
        assert 'thing (1 of 2 classes) in none' in messages[0]


class TestCommonImages:
    def test_are_warned_of_once(self, tree, messages):
        (tree.root / 'unlabeled.txt').write_text('u0\nl2\nl0\n')
        _check(tree.config('labeled'), tree.config('unlabeled'))
        assert messages == [
            f'2 images are both labelled and unlabelled, the first is {tree.image("l2")}; expected '
            'two sets without a common image'
        ]

    def test_none_no_warning(self, tree, messages):
        _check(tree.config('labeled'), tree.config('unlabeled'))
        assert messages == []

    def test_warning_reaches_the_log(self, tree, caplog):
        logger = MMLogger.get_instance('common_images')
        logger.addHandler(caplog.handler)
        _check(tree.config('labeled'), tree.config('labeled', pipeline=[]))
        assert '3 images are both labelled and unlabelled' in caplog.text


class TestDistributed:
    def test_other_ranks_raise_what_rank_0_found(self, tree, monkeypatch):
        def _broadcast(outcome):
            assert outcome == [None, None]
            outcome[1] = UserError('a.png: bad; expected good')

        monkeypatch.setattr(shares, 'get_rank', lambda: 1)
        monkeypatch.setattr(shares, 'broadcast_object_list', _broadcast)
        tree.image('l1').unlink()
        assert _error(tree) == 'a.png: bad; expected good'
