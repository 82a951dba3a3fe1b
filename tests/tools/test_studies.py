"""The studies with the real tools: a run each, and their mistakes."""

import sys

import pytest

OPTIONS = ('train_cfg.max_iters=2', 'train_cfg.val_interval=100', 'train_dataloader.batch_size=2',
           'test_dataloader.dataset.count=2')  # fmt: skip


@pytest.fixture
def demo(tiny, project_root):
    """Runs a study on the demo's config; gives the finished process."""

    def run(tool, *args):
        config = project_root / 'configs' / 'demo' / 'cct_shapes.py'
        command = (sys.executable, '-W', 'ignore', tiny.tools / f'{tool}.py', config)
        return tiny.shell(*command, '--out', tiny.folder / 'out', *args)

    run.out = tiny.folder / 'out'
    return run


def test_learning_curve_trains_tests_and_is_then_finished(demo):
    args = ('-n', '2', '--cfg-options', *OPTIONS)
    done = demo('learning_curve', *args)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '[2/2] cct, 2 labels, seed 0: mIoU ' in done.stdout
    for method in ('supervised', 'cct'):
        files = [path.name for path in (demo.out / method / '2' / 'seed0' / 'train').iterdir()]
        assert [name for name in files if name.endswith('.pth')] == ['iter_2.pth']
    text = (demo.out / 'learning_curve.md').read_text()
    assert 'With 2 labels **it cannot be told**' in text
    assert '| method | n=2 |' in text

    again = demo('learning_curve', *args)
    assert again.returncode == 0
    assert '2 of 2 runs are finished, skipped' in again.stdout
    assert ': train' not in again.stdout

    other = demo('learning_curve', '-n', '2', '--cfg-options', 'train_cfg.max_iters=3')
    assert other.returncode == 2
    assert other.stderr.splitlines()[-1].startswith('error: ')
    assert 'differs from the config of this study' in other.stderr


def test_ablation_needs_a_method(demo):
    failed = demo('ablation')
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1] == (
        'error: ablation: no method; expected --grid, --methods or both')
