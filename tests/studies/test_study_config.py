"""What a study asks of its config, before it writes anything."""

import pytest

from mmseg_cct.errors import UserError
from mmseg_cct.studies.learning_curve import nested_subsets
from mmseg_cct.studies.study import lists_of, prepare_study
from mmseg_cct.studies.study_config import study_config

CCT = 'cct/cct_mbv2_camvid_50.py'
EPOCHS = """
_base_ = {base!r}
train_cfg = dict(_delete_=True, type='EpochBasedTrainLoop', max_epochs=1)
"""
PLAIN = """
_base_ = {base!r}
train_dataloader = dict(
    dataset=dict(_delete_=True, type='FolderDataset', image_dir='a', classes=('a', 'b'))
)
"""


@pytest.fixture
def own(project_root, tmp_path, monkeypatch):
    """Writes a config of one's own on top of a shipped one; gives its path."""
    monkeypatch.chdir(project_root)

    def write(text):
        path = tmp_path / 'own.py'
        path.write_text(text.format(base=str(project_root / 'configs' / CCT)))
        return str(path)

    return write


MISTAKES = [
    (PLAIN, {}, r'own\.py: no train_dataloader\.dataset\.labeled; expected a SemiSegDataset'),
    (EPOCHS, {}, r'own\.py: no train_cfg\.max_iters; expected a training that counts iterations'),
    ('_base_ = {base!r}\noptim_wrapper = None', {}, r'own\.py: no optim_wrapper; expected'),
    ('_base_ = {base!r}\ntest_dataloader = None', {}, r'own\.py: no test_dataloader; expected'),
    (
        "_base_ = {base!r}\ncustom_hooks = [dict(type='EarlyStoppingHook', monitor='mIoU')]",
        {},
        r'own\.py: custom_hooks\.0: EarlyStoppingHook ends runs at different lengths; expected',
    ),
    ('_base_ = {base!r}', {'train_cfg.max_iters': 'abc'}, r"max_iters='abc': expected a whole"),
    ('_base_ = {base!r}', {'test_evaluator': None}, r'test_evaluator: missing; expected one'),
    (
        '_base_ = {base!r}\ndefault_hooks = dict(checkpoint=None)',
        {},
        r'own\.py: no default_hooks\.checkpoint; expected a CheckpointHook, whose last checkpoint',
    ),
    *(
        (
            f'_base_ = {{base!r}}\ntest_evaluator = {evaluator}',
            {},
            r'own\.py: test_evaluator: gives no mIoU, which a study collects; expected an IoU',
        )
        for evaluator in (
            "dict(iou_metrics=['mDice'])",
            "dict(prefix='test')",
            'dict(format_only=True)',
            "[dict(type='CityscapesMetric', output_dir='x')]",
        )
    ),
]


@pytest.mark.parametrize(('text', 'options', 'message'), MISTAKES)
def test_a_mistake_is_told_before_anything_is_written(own, tmp_path, text, options, message):
    base, out = own(text), tmp_path / 'out'
    for start in (
        lambda: study_config(base, options),
        lambda: nested_subsets(base, options, [20]),
        lambda: lists_of(base, options, [20]),
        lambda: prepare_study(out, base, {'cct': {}}, {'config': lambda *_: None}, [0], options),
    ):
        with pytest.raises(UserError, match=message):
            start()
    assert not out.exists()


@pytest.mark.parametrize(
    'evaluator',
    [
        "[dict(type='DepthMetric'), dict(type='ClassIoUMetric', iou_metrics=['mDice', 'mIoU'])]",
        "dict(_delete_=True, type='DumpResults', out_file_path='x.pkl')",
    ],
)
def test_a_test_that_may_give_miou_is_taken(own, evaluator):
    study_config(own(f'_base_ = {{base!r}}\ntest_evaluator = {evaluator}'), {})


def test_a_learning_curve_takes_one_domain():
    base = 'configs/multi_domain/cct_mbv2-jpu_camvid-idd_20.py'
    with pytest.raises(UserError, match=r'no train_dataloader\.dataset\.labeled, but several dom'):
        nested_subsets(base, {}, [20])
