"""Classes named once at the top level of a config."""

import pytest
from mmengine.config import Config

from mmseg_cct.config.class_names import apply_class_names
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError

CLASSES = ('background', 'crack', 'rust', 'bolt')


@pytest.fixture
def own(project_root, tmp_path):
    """Loads a config of one's own on top of a shipped one, as the README prints it."""

    def load(text, base='cct/cct_r50_folder.py', **options):
        path = tmp_path / 'own.py'
        path.write_text(f'_base_ = {str(project_root / "configs" / base)!r}\n{text}\n')
        return load_config(str(path), options)

    return load


def test_names_reach_data_sets_and_heads(own):
    config = own(f"classes = {CLASSES}\ncontext_classes = ('background', 'bolt')")
    train = config.train_dataloader.dataset
    sets = (
        train.labeled,
        train.unlabeled,
        config.val_dataloader.dataset,
        config.test_dataloader.dataset,
    )
    assert [dataset.classes for dataset in sets] == [CLASSES] * 4
    assert config.model.decode_head.num_classes == 4
    assert config.model.auxiliary_head.num_classes == 4
    assert config.model.auxiliary_head.context_classes == ('background', 'bolt')


def test_as_many_classes_as_masks_can_hold(own):
    names = ['background', *map(str, range(254))]
    assert own(f'classes = {names}').model.decode_head.num_classes == 255


def test_they_may_come_from_the_command_line(own):
    config = own('', classes=['a', 'b'], context_classes=['a'])
    assert config.model.decode_head.num_classes == 2
    assert config.val_dataloader.dataset.classes == ('a', 'b')


@pytest.mark.parametrize(
    ('key', 'value', 'kept', 'expected'),
    [
        ('decode_head.num_classes', 5, 4, 'classes at .* make it 4; expected classes=... in'),
        ('auxiliary_head.num_classes', 5, 4, 'classes at the top level make it 4'),
        (
            'auxiliary_head.context_classes',
            ['rust'],
            ['background'],
            r"context_classes at .* make it \('background',\); expected context_classes=",
        ),
    ],
)
def test_an_option_that_they_would_replace_is_an_error(own, key, value, kept, expected):
    key, names = f'model.{key}', f"classes = {CLASSES}\ncontext_classes = ('background',)"
    with pytest.raises(UserError, match=rf'--cfg-options {key}=.*: {expected}'):
        own(names, **{key: value})
    own(names, **{key: kept})


def test_an_option_for_a_binary_head_stays(own):
    options = {'model.decode_head.num_classes': 1}
    assert own(f'classes = {CLASSES[:2]}', **options).model.decode_head.num_classes == 1


def test_a_set_without_names_of_its_own_gets_them_as_meta_information():
    leaf = dict(type='BaseSegDataset')
    config = Config(
        dict(
            classes=('a', 'b'),
            model=dict(decode_head=[dict(num_classes=19), dict(num_classes=19)]),
            train_dataloader=dict(
                dataset=dict(type='ConcatDataset', datasets=[leaf, dict(leaf, metainfo={})])
            ),
        )
    )
    apply_class_names(config)
    named = [each.metainfo.classes for each in config.train_dataloader.dataset.datasets]
    assert named == [('a', 'b')] * 2
    assert [head.num_classes for head in config.model.decode_head] == [2, 2]


def test_a_binary_head_keeps_its_one_output():
    config = Config(
        dict(
            classes=('a', 'b'),
            model=dict(decode_head=dict(num_classes=1)),
            val_dataloader=dict(dataset=dict(type='FolderDataset')),
        )
    )
    apply_class_names(config)
    assert config.model.decode_head.num_classes == 1


def test_heads_without_a_number_take_it_from_the_data_sets_own_names():
    heads = [dict(num_classes=None), dict(num_classes=7), dict()]
    config = Config(
        dict(
            model=dict(decode_head=heads),
            train_dataloader=dict(dataset=dict(labeled=dict(type='CamVidDataset'))),
        )
    )
    apply_class_names(config)
    assert config.model.decode_head == [dict(num_classes=11), *heads[1:]]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (
            "classes = ('a', 'b')\nval_dataloader = dict(dataset=dict(classes=('b', 'a')))",
            r'own\.py: classes=\(a, b\): val_dataloader\.dataset \(FolderDataset\) has \(b, a\); '
            'expected the same names in the same order',
        ),
        ("classes = ('a', 'a')\ncontext_classes = ()", 'expected every name once'),
        ("classes = 'background'", "classes='background': expected the class names"),
        ('classes = ()', 'expected the class names'),
        (
            "classes = ('crack',)",
            r"classes=\('crack',\): expected two names or more, that of the b",
        ),
        (
            'classes = list(map(str, range(256)))',
            r'classes=\(0, 1, 2, 3, \.\.\.\): 256 names; expected at most 255: MMSeg reads',
        ),
        ("context_classes = 'bg'", "context_classes='bg': expected a list, also of one class"),
        ('context_classes = 0', 'context_classes=0: expected a list'),
        ('classes = 3', 'classes=3: expected the class names'),
        ("context_classes = ('backgrond',)", "no class 'backgrond'; did you mean background"),
    ],
)
def test_names_that_do_not_fit_are_refused(own, text, message):
    with pytest.raises(UserError, match=message) as error:
        own(text)
    assert '\n' not in str(error.value)


def test_a_known_data_set_keeps_its_classes(own):
    with pytest.raises(
        UserError,
        match=r'train_dataloader\.dataset\.labeled \(PascalVOCDataset\) has \(background, aerop',
    ):
        own("classes = ('a', 'b')", 'cct/cct_r50_voc_1464.py')
