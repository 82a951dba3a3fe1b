"""The commands of the pages for newcomers, typed one after the other, in this process."""

import re
import runpy
import shlex
import sys

import cv2
import numpy as np
import pytest
import world

BLOCK = re.compile(r'^```bash\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# Short trainings of small images, and nothing downloaded.
TINY = {
    'train': ['--cfg-options', 'train_cfg.max_iters=2', 'train_cfg.val_interval=2'],
    'new-config': ['--from-scratch', '--iters', '2', '--batch-size', '2'],
}
for loader in ('train', 'val', 'test'):
    TINY['train'].append(f'{loader}_dataloader.num_workers=0')
# They install or download.
NOT_TYPED = {'git', 'cd', 'source', 'mmseg-cct preview'}


def typed(page):
    """The words of each command in the blocks of a page."""
    text = '\n'.join(BLOCK.findall(page)).replace('\\\n', '')
    commands = [part for line in text.splitlines() for part in line.split(' && ')]
    return [words for command in commands if (words := shlex.split(command, comments=True))]


def write_data(folder):
    """Own images, of which the first have masks of four classes, photos, and a preview's masks."""
    rng = np.random.default_rng(0)
    for name in ('data/mine/images', 'data/mine/masks', 'photos', 'preview/masks'):
        (folder / name).mkdir(parents=True)
    for number in range(108):
        image = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        images = 'photos' if number >= 106 else 'data/mine/images'
        cv2.imwrite(str(folder / images / f'{number:03}.jpg'), image)
        mask = np.repeat(np.arange(4) % 3, 16)[None].repeat(48, 0).astype(np.uint8)
        for masks in ('preview/masks', *['data/mine/masks'] * (number < 102)):
            cv2.imwrite(str(folder / masks / f'{number:03}.png'), mask)


@pytest.mark.parametrize('page', ['README.md', 'docs/tutorial.md', 'docs/own_data.md'])
def test_the_commands_of_a_page_run_one_after_the_other(
    slow, page, project_root, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    (tmp_path / 'examples').symlink_to(project_root / 'examples')
    commands = typed((project_root / page).read_text(encoding='utf-8'))
    assert len(commands) > 5
    for program, name, *arguments in commands:
        if {program, f'{program} {name}'} & NOT_TYPED:
            continue
        if program == 'bash':  # scripts that set up an environment
            assert (project_root / name).is_file()
        elif program == 'python':
            monkeypatch.setattr(sys, 'argv', [name, *arguments])
            runpy.run_path(name, run_name='__main__')
            for path in tmp_path.glob('data/cracks/**/*.png'):  # fewer without a label will do
                if int(path.stem) >= 20 and int(path.stem) % 10:
                    path.unlink()
        else:
            assert program == 'mmseg-cct'
            arguments += TINY.get(name, [])
            assert not world.run_tool(name.replace('-', '_'), *arguments), (name, arguments)
