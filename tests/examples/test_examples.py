import contextlib
import csv
import io
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import world
from PIL import Image

# A worker that is left to the garbage collector takes five seconds to end.
NO_WORKERS = ['--cfg-options', *(f'{k}_dataloader.num_workers=0' for k in ('train', 'val', 'test'))]


@pytest.fixture(scope='module')
def folder(project_root, tmp_path_factory):
    """A folder with what the examples read from the checkout, in which they write."""
    folder = tmp_path_factory.mktemp('checkout')
    for name in ('configs', 'examples', 'tools'):
        (folder / name).symlink_to(project_root / name)
    return folder


@pytest.fixture(scope='module')
def run(slow, folder):
    """Runs an example, and the tools that it calls, here: a process would import all again."""

    run_process = subprocess.run

    def run_tool(command, **options):
        if command[0] != sys.executable:
            return run_process(command, **options)
        name = Path(command[1]).stem
        return world.run_tool(name, *command[2:], *(NO_WORKERS if name == 'train' else ()))

    def run(script, *arguments):
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.chdir(folder)
            patch.setattr(sys, 'argv', [script, *map(str, arguments)])
            patch.setattr(subprocess, 'run', run_tool)
            runpy.run_path(f'examples/{script}.py', run_name='__main__')
        return printed.getvalue()

    return run


@pytest.fixture(scope='module')
def trained(run):
    """What the first example prints."""
    return run('1_train', 4)


def test_training_from_python_compares_both(trained, folder):
    for method in ('supervised', 'cct'):  # each has a log of its own
        assert list((folder / 'work_dirs' / 'examples' / method).glob('*/vis_data/scalars.json'))
    assert re.search(r'mIoU: supervised \d+\.\d, CCT \d+\.\d', trained)


def test_a_folder_is_predicted_into_a_table(run, folder, trained):
    run('2_predict_folder')
    with (folder / 'work_dirs' / 'examples' / 'shares.csv').open() as file:
        rows = list(csv.DictReader(file))
    assert [row.pop('photo') for row in rows] == ['0.JPG', '1.JPG', '2.JPG']
    assert rows[0].keys() >= {'disc', 'ring'}
    assert sum(map(float, rows[0].values())) == pytest.approx(1, abs=1e-3)


def test_features_change_on_class_boundaries(run, folder, trained):
    ratios = re.findall(r'^(.+): boundary / inside (\d+\.\d\d)$', run('7_cluster_assumption'), re.M)
    assert [name for name, _ in ratios] == ['20×20 patches', 'neck', 'backbone']
    assert all(float(ratio) > 0 for _, ratio in ratios)
    assert (folder / 'work_dirs/examples/clusters.png').is_file()


def test_drawn_cracks_are_rare_and_have_masks_for_some(run, folder):
    run('draw_cracks', 'cracks')
    masks = sorted((folder / 'cracks/masks').iterdir())
    assert (len(masks), len(list((folder / 'cracks/images').iterdir()))) == (20, 120)
    share = np.mean([np.asarray(Image.open(path)) for path in masks])
    assert 0.003 < share < 0.02


@pytest.mark.parametrize(
    ('script', 'written'), [('3_own_data_set', 'on_stripes'), ('4_own_perturbation', 'scaling')]
)
def test_own_parts_train(run, folder, script, written):
    run(script, 4)
    assert (folder / 'work_dirs' / 'examples' / written / 'iter_4.pth').is_file()


def test_the_loop_adds_the_corrected_images(run, folder):
    run('5_labelling_loop', 2)
    loop = folder / 'work_dirs' / 'examples' / 'loop'
    assert len(list((loop / 'data' / 'masks').iterdir())) == 15
    assert (loop / 'report' / 'report.html').is_file()
