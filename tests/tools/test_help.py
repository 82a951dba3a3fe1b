import json
import shlex
import subprocess
import sys

import numpy as np
from folders import save

import mmseg_cct
from mmseg_cct.cli.arguments import METHODS_HELP
from mmseg_cct.cli.commands import commands
from mmseg_cct.config.shipped import method_names

# Runs the command lines of stdin in one process and prints what each says.
RUN_ALL = """
import contextlib, io, runpy, shlex, sys
for line in sys.stdin.read().splitlines():
    sys.argv = shlex.split(line)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            if sys.argv[0] == '-m':
                sys.argv[:] = sys.argv[1:]
                runpy.run_module('mmseg_cct', run_name='__main__')
            else:
                runpy.run_path(sys.argv[0], run_name='__main__')
        except SystemExit as end:
            code = end.code
        else:
            code = None
    heavy = {'torch', 'mmcv', 'mmseg'} & set(sys.modules)
    assert not heavy, (line, heavy)
    print([code, said.getvalue()])
"""


def answers(*lines):
    done = subprocess.run(
        [sys.executable, '-c', RUN_ALL], input='\n'.join(lines), text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return [eval(line) for line in done.stdout.splitlines()]


def test_help_imports_nothing_heavy(project_root):
    tools = {path.name for path in (project_root / 'tools').glob('*.py')}
    assert {path.name for path in commands().values()} == tools
    scripts = list(commands().values())
    for script, (code, said) in zip(
        scripts, answers(*(f'{shlex.quote(str(script))} --help' for script in scripts)), strict=True
    ):
        assert code == 0 and f'{script.name} ' in said.replace('\n', ' ') and ' --help' in said
    *listed, (_, version), (train_code, train) = answers(
        '-m mmseg_cct', '-m mmseg_cct --help', '-m mmseg_cct --version', '-m mmseg_cct train --help'
    )
    assert version == f'mmseg_cct {mmseg_cct.__version__}\n'
    for code, said in listed:
        assert code in (0, None) and all(f'\n{name} ' in said for name in commands())
    assert train_code == 0 and 'usage: mmseg_cct train ' in train
    named = METHODS_HELP.split(', ')[:-1]
    assert set(named) < set(method_names()) and all(f'{name},' in train for name in named)


def test_tools_that_need_no_network_start_without_one(tmp_path):
    square = dict(label='car', points=[[1, 1], [4, 1], [4, 3], [1, 3]])
    for name in 'ab':
        image = tmp_path / f'export/{name}.png'
        save(image, np.zeros((6, 8, 3), np.uint8))
        content = dict(imagePath=image.name, imageWidth=8, imageHeight=6, shapes=[square])
        image.with_suffix('.json').write_text(json.dumps(content))
    (splits, _), (imported, said) = answers(
        f'-m mmseg_cct make-splits --images {tmp_path}/export -n 1 --out {tmp_path}/lists',
        f'-m mmseg_cct import-masks {tmp_path}/export --rest background --out {tmp_path}/data',
    )
    assert splits is imported is None and '2 new masks' in said and 'Next:' in said


def test_a_wrong_argument_or_path_is_reported_before_anything_heavy(tmp_path):
    tools = {name: shlex.quote(str(path)) for name, path in commands().items()}
    lines = {
        f'{tools["train"]} a.py --launcher smoke': "invalid choice: 'smoke'",
        f'{tools["new-config"]} data --classes a --backbone r34': "invalid choice: 'r34'",
        f'{tools["ablation"]} a.py --out b --seeds -1': 'expected',
        f'{tools["train"]} configs/typo.py': 'error: configs/typo.py: no such config file\n',
        '-m mmseg_cct trian': 'trian: no such command; expected one of',
        f'-m mmseg_cct new-config {tmp_path} --classes a b --size 250x130': '--size 250x130',
        '-m mmseg_cct next-batch --out x': 'WORK_DIR: missing',
        f'-m mmseg_cct make-image-labels --masks {tmp_path} --images {tmp_path} --classes a b '
        f'--background c --out x': '--background c',
        f'-m mmseg_cct make-splits --images {tmp_path} --mask-suffix x --out x': '--masks',
        '-m mmseg_cct train demo/cct_shapes --cfg-options a': '--cfg-options a',
        '-m mmseg_cct predict gone photos --out x --min-area 5': '--min-area',
    }
    (tmp_path / 'images').mkdir()
    gone = (
        'new-config gone --classes a b',
        'train gone.py',
        'test gone',
        'predict gone photos --out x',
        'report a=gone --out x',
        'next-batch gone --out x',
        'publish-model gone x.pth',
        'ablation gone.py --out x',
        'import-masks gone --out x',
        'make-splits --images gone -n 3 --out x',
        'add-cct config --unlabeled gone --out x.py',
        'convert-checkpoint gone x.pth',
        f'make-image-labels --csv gone --classes a b --images {tmp_path} --out x',
    )
    lines |= {f'-m mmseg_cct {line}': 'gone' for line in gone}
    for (line, message), (code, said) in zip(lines.items(), answers(*lines), strict=True):
        assert code == 2 and message in said, line
        assert message != 'gone' or said.startswith('error: '), line
