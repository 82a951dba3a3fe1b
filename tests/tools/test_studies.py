"""A study end to end: the real train.py and test.py, each run in this process."""

import contextlib

import pytest
import world

from mmseg_cct.studies.execution import Processes

OPTIONS = ('train_cfg.max_iters=2', 'train_cfg.val_interval=100', 'train_dataloader.batch_size=2',
           'test_dataloader.dataset.count=2')  # fmt: skip


@pytest.fixture
def demo(slow, cct, project_root, monkeypatch):
    """Runs a study on the demo's config; gives the exit code."""

    def run(self, command, log, slot):
        _, script, *arguments = command
        with log.open('a') as output, contextlib.redirect_stdout(output):
            world.run_tool(script.stem, *arguments)

    # processes are those of studies/test_execution.py; here each would import everything again
    monkeypatch.setattr(Processes, 'run', run)
    config = project_root / 'configs' / 'demo' / 'cct_shapes.py'
    return lambda *arguments: cct.tool('ablation', config, '--out', 'out', *arguments)


def test_a_run_is_trained_tested_and_then_finished(demo, tmp_path, project_root, capsys):
    arguments = ('--methods', 'supervised', '--cfg-options', *OPTIONS)
    code = demo(*arguments)
    printed = capsys.readouterr()
    assert code == 0, printed
    assert "[1/1] supervised, the config's labels, seed 0: mIoU " in printed.out
    files = [path.name for path in (tmp_path / 'out/supervised/config/seed0/train').iterdir()]
    assert [name for name in files if name.endswith('.pth')] == ['iter_2.pth']
    assert '| supervised | ' in (tmp_path / 'out' / 'ablation.md').read_text()

    assert demo(*arguments) == 0
    printed = capsys.readouterr().out
    assert '1 of 1 run finished, skipped' in printed
    assert ': train' not in printed

    assert demo(*arguments, 'optim_wrapper.optimizer.lr=0.5') == 2
    error = capsys.readouterr().err
    assert error.startswith('error: out/supervised/config/seed0/config.py: ')
    assert demo('--methods', 'kl', str(project_root / 'configs/methods/kl.py')) == 2
    assert 'two files of one name' in capsys.readouterr().err
