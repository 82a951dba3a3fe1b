"""No photo, mask, link or foreign file is lost, whatever output is named."""

import argparse
import json
import shutil

import pytest
import tiny_weak
import torch
import world
from public_state import public_state
from world import contents

# What names a place that a tool writes to.
OUTPUTS = {'out', 'work_dir', 'target'}
CLASSES = '--classes ground thing other'
COMMANDS = {
    ('ablation', 'out'): 'tiny.py --methods cct --out',
    ('add_cct', 'out'): 'tiny.py --unlabeled data/images --force --out',
    ('config', 'out'): 'tiny.py --out',
    ('convert_checkpoint', 'target'): 'public.pth',
    ('import_masks', 'out'): 'a.json --rest background --overwrite --images data/images --out',
    ('make_image_labels', 'out'): f'--masks data/masks --images data/images {CLASSES} --out',
    ('make_pseudo_labels', 'out'): 'weak/cam.py weak/cam.pth --workers 0 --no-crf --out',
    ('make_splits', 'out'): '--images data/images -n 2 --force --out',
    ('new_config', 'out'): f'data {CLASSES} --from-scratch --force --out',
    ('next_batch', 'out'): 'x.pth --out',
    ('predict', 'out'): 'tiny.py x.pth data/images --out',
    ('preview', 'out'): f'data {CLASSES} --out',
    ('publish_model', 'target'): 'tiny.py x.pth --overwrite',
    ('report', 'out'): 'run=run --out',
    ('test', 'out'): 'tiny.py x.pth --work-dir t --out',
    ('test', 'work_dir'): 'tiny.py x.pth --work-dir',
    ('train', 'work_dir'): 'tiny.py --work-dir',
}
TARGETS = ('data/images/l0.png', 'data/images', 'data/images/new', 'link')
# Where the tool is not told that the folder holds data: it may write there, but replace nothing.
UNTOLD = {
    ('convert_checkpoint', 'data/images/new'),
    # these read other data
    *((tool, 'data/images/new') for tool in ('make_pseudo_labels', 'next_batch', 'report')),
    *(('publish_model', target) for target in TARGETS),  # the name gets a hash
}


def test_every_output_of_every_tool_has_its_command(project_root, monkeypatch):
    named = set()

    def stop(parser, *_):
        named.update((tool, each.dest) for each in parser._actions if each.dest in OUTPUTS)
        raise NotImplementedError

    for name in ('parse_args', 'parse_intermixed_args'):
        monkeypatch.setattr(argparse.ArgumentParser, name, stop)
    for tool in (path.stem for path in (project_root / 'tools').glob('*.py')):
        with pytest.raises(NotImplementedError):
            world.run_tool(tool)
    assert named == COMMANDS.keys()


@pytest.fixture
def inputs(cct, trained):
    shutil.copy(trained.checkpoint, cct.folder / 'x.pth')
    return cct


@pytest.mark.parametrize(('tool', 'option'), COMMANDS)
def test_nothing_that_was_there_is_lost(tool, option, inputs, trained, capfd):
    root = inputs.folder
    shutil.copytree(trained.checkpoint.parent, root / 'run')
    torch.save(public_state(), root / 'public.pth')
    (root / 'mine.txt').write_text('mine')
    (root / 'link').symlink_to('mine.txt')
    shape = dict(label='thing', shape_type='rectangle', points=[[1, 1], [9, 9]])
    drawn = dict(imagePath='l0.png', imageWidth=40, imageHeight=32, shapes=[shape])
    (root / 'a.json').write_text(json.dumps(drawn))
    if tool == 'make_pseudo_labels':
        pytest.importorskip('mmpretrain', reason='the classifier is made of its parts')
        tiny_weak.make_weak(root / 'weak')
    before = contents(root)
    for target in TARGETS:
        arguments = COMMANDS[tool, option].split()
        arguments.append(target)
        code = inputs.tool(tool, *arguments)
        after = contents(root)
        told = capfd.readouterr().err
        assert {name: after.get(name) for name in before} == before, (target, told)
        assert 'Traceback' not in told
        is_refused = code == 2 and after.keys() == before.keys()
        assert is_refused or (tool, target) in UNTOLD, (target, told)
        assert not is_refused or target in told  # and nothing else is the reason
        for name in after.keys() - before.keys():
            (root / name).unlink()


# what is read by that name, and folders that hold what the tool would replace
NAMED = (
    'predict tiny.py x.pth data/images --out tiny.py',
    'convert_checkpoint x.pth x.pth --overwrite',
    'make_splits --list there/2_labeled.txt -n 2 --out there --force',
    'train tiny.py --work-dir best',
)


@pytest.mark.parametrize('command', NAMED)
def test_other_names_are_refused_in_one_line(command, inputs, capfd):
    for name in ('there/2_labeled.txt', 'best/best_mIoU_iter_1.pth'):
        (inputs.folder / name).parent.mkdir()
        (inputs.folder / name).write_text('mine')
    before = contents(inputs.folder)
    assert inputs.tool(*command.split()) == 2
    (line,) = [line for line in capfd.readouterr().err.splitlines() if 'error: ' in line]
    assert contents(inputs.folder) == before, line


def test_a_training_that_ended_before_its_first_checkpoint_may_start_again(inputs):
    (inputs.folder / 'mine.py').write_text('train_cfg = dict(max_iters=3)')
    train = 'train', 'tiny.py', '--method', 'mine.py', '--work-dir', 'w'
    assert inputs.tool(*train, '--cfg-options', 'optim_wrapper.optimizer.lr=1e30') == 2
    assert list((inputs.folder / 'w').glob('nonfinite_iter_?.pth'))
    (dump,) = (inputs.folder / 'w').glob('*.py')
    dump.unlink()
    dump.symlink_to(inputs.file)
    settings = inputs.file.read_bytes()
    assert inputs.tool(*train) == 0
    assert inputs.file.read_bytes() == settings and not dump.is_symlink()
