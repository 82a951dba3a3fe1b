"""The blocks of the pages for newcomers, typed one after the other into a fresh shell."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest

BLOCK = re.compile(r'^```bash\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# Python that makes environments without pip, for which the next text stands there.
PYTHON = """#!/bin/sh
[ "$2" = venv ] || exec {python} "$@"
{python} -m venv --without-pip "$4" && cp -r {packages}/. "$4"/lib/python*/site-packages
"""
PIP = """
import sys
from pathlib import Path
if 'install' in sys.argv:
    assert sys.argv[-2] == '-e'
    command = Path(sys.prefix, 'bin', 'mmseg-cct')
    command.write_text(f'#!{sys.executable}\\nfrom mmseg_cct.__main__ import main\\nmain()\\n')
    command.chmod(0o755)
"""
GIT = '#!/bin/sh\ncp -r {checkout} "${{2##*/}}"\n'
# What tools get after their arguments: short trainings of small images, and nothing downloaded.
TINY = {
    'train': [
        *('--cfg-options', 'train_cfg.max_iters=2', 'train_cfg.val_interval=2'),
        *('train_dataloader.num_workers=0', 'val_dataloader.num_workers=0'),
    ],
    'new_config': ['--from-scratch', '--iters', '2', '--batch-size', '2'],
}


@pytest.fixture
def shell(slow, project_root, tmp_path):
    """Programs that install nothing, a checkout to clone and data in it; runs a script."""
    checkout, packages, programs = (tmp_path / name for name in ('checkout', 'packages', 'bin'))
    unread = shutil.ignore_patterns('__pycache__')
    for name in ('configs', 'examples', 'mmseg_cct', 'tools'):
        shutil.copytree(project_root / name, checkout / name, symlinks=True, ignore=unread)
    for name in ('model-index.yml', 'pyproject.toml', 'setup.py'):
        shutil.copy(project_root / name, checkout)
    for name, arguments in TINY.items():
        tool = checkout / 'tools' / f'{name}.py'
        more = f'import sys\nsys.argv += {arguments}\nif __name__'
        tool.write_text(tool.read_text().replace('if __name__', more))
    write_images(checkout)

    (packages / 'pip').mkdir(parents=True)
    (packages / 'pip' / '__init__.py').touch()
    (packages / 'pip' / '__main__.py').write_text(PIP)
    installed = [path for path in sys.path if path.endswith('site-packages')]
    paths = [str(tmp_path / 'home' / 'mmseg-cct'), *installed]
    (packages / 'installed.pth').write_text('\n'.join(paths))
    programs.mkdir()
    for name, text in (('python3', PYTHON), ('git', GIT)):
        program = programs / name
        paths = dict(python=sys.executable, packages=packages, checkout=checkout)
        program.write_text(text.format(**{key: shlex.quote(str(p)) for key, p in paths.items()}))
        program.chmod(0o755)
    (tmp_path / 'home').mkdir()
    environment = dict(
        HOME=str(tmp_path / 'home'), PATH=f'{programs}{os.pathsep}/usr/bin:/bin',
        OMP_NUM_THREADS='1', LANG='C.UTF-8',
    )  # fmt: skip

    def run(script):
        return subprocess.run(
            ['bash', '-ex'], input=script, cwd=tmp_path / 'home', env=environment, text=True,
            capture_output=True, timeout=1800,
        )  # fmt: skip

    return run


def write_images(folder):
    """A folder of own images, of which the first have masks of three classes, and photos."""
    rng = np.random.default_rng(0)
    for name in ('data/mine/images', 'data/mine/masks', 'photos'):
        (folder / name).mkdir(parents=True)
    for number in range(108):
        image = rng.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        place = 'photos' if number >= 106 else 'data/mine/images'
        cv2.imwrite(str(folder / place / f'{number:03}.jpg'), image)
        if number < 102:
            mask = np.repeat(np.arange(4) % 3, 16)[None].repeat(48, 0).astype(np.uint8)
            cv2.imwrite(str(folder / 'data/mine/masks' / f'{number:03}.png'), mask)
    cv2.imwrite(str(folder / 'photo.jpg'), image)


def test_blocks_run_in_a_shell_that_ran_those_before(shell, project_root):
    names = ('README.md', 'docs/tutorial.md', 'docs/own_data.md')
    pages = [BLOCK.findall((project_root / name).read_text(encoding='utf-8')) for name in names]
    assert all(len(blocks) > 2 for blocks in pages)
    readme, tutorial, own_data = pages
    # the last page is read instead of README's own
    forget = 'rm -r configs/mine work_dirs predictions\n'
    script = '\n'.join([*readme, *tutorial, forget, *own_data])
    done = shell(re.sub('^mmseg-cct check-masks.*', '', script, flags=re.M))  # downloads weights
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
