"""What test_all_outputs does not try: inputs by name, and a tool's own earlier outputs."""

import hashlib
import json
import shutil

import pytest
import tiny_weak


def contents(folder):
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


@pytest.fixture
def inputs(cct, trained):
    shutil.copy(trained.checkpoint, cct.folder / 'x.pth')
    return cct


NAMED = (
    'predict tiny.py x.pth data/images --out tiny.py',
    'convert_checkpoint x.pth x.pth --overwrite',
    'make_splits --images data/images -n 2 --out there',
    'make_splits --list there/2_labeled.txt -n 2 --out there --force',
    'train tiny.py --work-dir best',
    'train tiny.py --work-dir notes',
    'train tiny.py --work-dir notes --resume x.pth',
    'train tiny.py --work-dir links',
    'train tiny.py --work-dir stopped',
    'test tiny.py x.pth --work-dir notes',
)


@pytest.mark.parametrize('command', NAMED)
def test_refused_in_one_line(command, inputs, capfd):
    for name in (
        'there/2_labeled.txt', 'best/best_mIoU_iter_1.pth', 'notes/tiny.py',
        'stopped/nonfinite_iter_0.pth',
    ):  # fmt: skip
        (inputs.folder / name).parent.mkdir(exist_ok=True)
        (inputs.folder / name).write_text('mine')
    (inputs.folder / 'links').mkdir()
    (inputs.folder / 'links/tiny.py').symlink_to(inputs.folder / 'notes/tiny.py')
    before = contents(inputs.folder)
    assert inputs.tool(*command.split()) == 2
    (line,) = [line for line in capfd.readouterr().err.splitlines() if 'error: ' in line]
    assert contents(inputs.folder) == before, line


def test_a_tool_goes_on_in_its_own_folder_and_not_in_that_of_another(inputs, capfd):
    predict = 'predict', 'tiny.py', 'x.pth', 'data/val_images', '--out', 'out'
    for _ in range(2):
        assert inputs.tool(*predict) == 0
    batch = 'next_batch', 'x.pth', '--out'
    assert inputs.tool(*batch, 'batch') == 0
    assert inputs.tool(*batch, 'batch') == 2
    assert inputs.tool(*batch, 'out') == 2
    assert inputs.tool(*predict[:-1], 'batch') == 2
    capfd.readouterr()


def test_corrected_image_labels_make_new_pseudo_labels(cct, capfd):
    pytest.importorskip('mmpretrain', reason='the classifier is made of its parts (extra `weak`)')
    weak = tiny_weak.make_weak(cct.folder / 'weak')
    label = (
        'make_pseudo_labels', weak.config, weak.checkpoint, '--out', weak.out, '--workers', 0,
        '--no-crf', '--pictures', 0,
    )  # fmt: skip
    assert cct.tool(*label) == 0
    before = contents(cct.folder / 'weak/out/labels')
    file = cct.folder / 'weak/labels.json'
    labels = json.loads(file.read_text())
    labels['data_list'][0]['gt_label'] = []
    file.write_text(json.dumps(labels))
    capfd.readouterr()
    assert cct.tool(*label) == 0
    assert '1 written' in capfd.readouterr().out
    after = contents(cct.folder / 'weak/out/labels')
    changed = [path.name for path in before if before[path] != after[path]]
    assert changed == ['a.png']


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
