"""What happens to a config before the runner has it, step by step."""

import pytest

from mmseg_cct.apis.prepare import (
    LAUNCHER_STEPS,
    TEST_STEPS,
    TRAINING_STEPS,
    Request,
    prepare,
    weak_masks,
)
from mmseg_cct.apis.run import Run
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError


def test_what_is_prepared_is_a_copy(cct):
    config = load_config(str(cct.file), {'visualizer.name': 'a', 'work_dir': 'before'})
    before = config.to_dict()
    request = Request(amp=True, compile=True, work_dir='after', checkpoint='a.pth', tta=True)
    for steps in (TRAINING_STEPS, TEST_STEPS):
        assert prepare(config, request, steps).work_dir == 'after'
        assert config.to_dict() == before


@pytest.mark.parametrize(
    ('method', 'name'), [('supervised', 'demo/cct_shapes'), ('cct', 'cct_r50_cityscapes-camvid_50')]
)
def test_masks_need_auxiliary_decoders_of_one_domain(method, name):
    config = load_config(name, dict(method=method))
    with pytest.raises(UserError) as error:
        weak_masks(config, Request(weak_masks='masks'))
    assert error.value.problems[0].key == '--weak-masks'


def test_the_config_says_what_each_step_changed_and_nothing_of_an_earlier_run(cct):
    def longer(config, request):
        """Trains for longer."""
        config.train_cfg.max_iters = 9

    config = load_config(str(cct.file), {'prepared': dict(longer=['of an earlier run'])})
    prepared = prepare(config, Request(), (*LAUNCHER_STEPS, longer)).prepared
    assert prepared == dict(longer=['train_cfg.max_iters: 6 -> 9'])
    config.default_hooks = {}
    assert 'default_hooks.preflight.type: unset -> PreflightHook' in (
        prepare(config, Request(), LAUNCHER_STEPS).prepared.protections
    )


def test_what_is_noted_changes_no_digest(trained):
    run = Run.open(trained.work_dir)
    assert 'work_dir' in run.config.prepared
    other = Run.open(trained.work_dir, options=dict(prepared={}))
    assert run.digest == other.digest


def test_self_training_learns_masks_without_auxiliary_decoders():
    config = load_config('demo/cct_shapes', dict(method='self-training'))
    weak_masks(config, Request(weak_masks='masks'))
    assert config.train_dataloader.dataset.weak_masks == 'masks'
    assert 'weak_masks' not in config.default_hooks
