"""A trained teacher for self-training."""

import pytest
import world


@pytest.fixture(scope='session')
def teacher(slow, tmp_path_factory):
    """A teacher with two checkpoints, and the setting that it was trained by."""
    root = tmp_path_factory.mktemp('self_training')
    world.write_images(root)
    config = world.cct_config(root)
    flips = [dict(type='RandomFlip', prob=p) for p in (0.0, 1.0)]
    views = [flips, [world.LOAD_MASK], [dict(type='PackSegInputs')]]
    config.tta_pipeline = [world.LOAD_IMAGE, dict(type='TestTimeAug', transforms=views)]
    config.default_hooks.checkpoint.interval = 3
    config.custom_hooks = [dict(type='IterationSeedHook')]
    config.dump(root / 'setting.py')
    world.run_tool('train', root / 'setting.py', '--work-dir', root / 'teacher')
    return root
