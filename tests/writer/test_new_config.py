"""The setting of a folder: written and loaded; what does not fit is refused."""

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from folders import CLASSES, load, save, write
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS, MODELS
from PIL import Image
from world import run_tool

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.config.load import load_config
from mmseg_cct.datasets.files.images import read_mask
from mmseg_cct.errors import UserError
from mmseg_cct.writer import new_config as module
from mmseg_cct.writer.backbones import BACKBONES
from mmseg_cct.writer.new_config import Choices, new_config


@pytest.mark.parametrize(
    ('name', 'plain'),
    [("it's", 'it-s'), ('my data', 'my-data'), ('v1.2', 'v1.2'), ('$x;"y"', '-x-y-'), ('ö', 'ö')],
)
def test_a_name_keeps_what_a_shell_and_python_leave_alone(name, plain):
    assert module.plain_name(f'data/{name}') == plain


def test_the_background_is_no_object_unless_told(data):
    def context(classes, **options):
        config = load(data, classes=classes, force=True, **options)
        return config.model.auxiliary_head.context_classes

    assert context(('_background_', 'crack', 'rust')) == ('_background_',)
    assert context(('road', 'crack', 'rust')) == ()
    assert context(CLASSES, context=('crack', 'rust')) == ('crack', 'rust')


def test_any_name_of_a_folder_will_do(data):
    renamed = data.rename(data.with_name("it's"))
    written = new_config(str(renamed), str(data.parents[1] / "own's configs"), Choices(CLASSES))
    labeled = load_config(str(written.file), {}).train_dataloader.dataset.labeled
    assert labeled.image_dir == f'{renamed}/images'
    work_dir = f"work_dirs/own's configs/{written.file.stem}"
    assert shlex.split(written.commands[0])[-3:] == [str(written.file), '--work-dir', work_dir]


def test_the_setting_is_that_of_the_folder(data):
    written = write(data, size=(64, 32), iters=40, batch_size=2)
    config = load_config(str(written.file), {})
    labeled, unlabeled = (config.train_dataloader.dataset[x] for x in ('labeled', 'unlabeled'))
    assert labeled.classes == config.test_dataloader.dataset.classes == CLASSES
    assert labeled.image_dir == unlabeled.image_dir == f'{data}/images'
    assert (labeled.subset, unlabeled.subset) == ('labeled', 'unlabeled')
    assert config.val_dataloader.dataset.mask_dir == f'{data}/val/masks'
    assert config.model.decode_head.num_classes == 3
    assert config.model.auxiliary_head.context_classes == ('background',)
    assert config.model.data_preprocessor.size == labeled.pipeline[3].crop_size == (32, 64)
    # prediction reads the pipeline of the top level
    for pipeline in (config.val_dataloader.dataset.pipeline, config.test_pipeline):
        assert pipeline[1] == dict(type='Resize', scale=(64, 32), keep_ratio=True)
    assert config.param_scheduler.end == config.train_cfg.max_iters == 40
    assert config.train_cfg.val_interval == 5
    assert config.train_dataloader.batch_size == 2


def test_without_a_folder_to_validate_on_a_fifth_of_the_masks_is_held_out(data):
    (data / 'val').rename(data / 'other')
    written = write(data)
    val, table = written.lists
    assert table == data / 'classes.json'
    assert val.read_text() == '0\n'
    config = load_config(str(written.file), {})
    assert config.train_dataloader.dataset.labeled.exclude == str(val)
    assert config.val_dataloader.dataset.ann_file == str(val)
    assert config.val_dataloader.dataset.image_dir == f'{data}/images'
    (data / 'masks/0.png').unlink()
    with pytest.raises(UserError, match=r'val\.txt: 0 has no mask; expected'):
        write(data)


@pytest.mark.parametrize('has_val', [True, False])
def test_masks_that_came_in_make_the_next_round(data, has_val):
    if not has_val:
        (data / 'val').rename(data / 'other')
    first = write(data)
    before = {path: path.read_text() for path in (first.file, *first.lists)}
    with pytest.raises(UserError, match=f'{first.file}: exists for this number of masks; exp'):
        write(data)
    for index in (4, 5):
        shutil.copy(data / 'masks/1.png', data / f'masks/{index}.png')
    second = write(data, iters=800)
    assert second.file == first.file.with_name('cct-strong_mbv2_mine-round2.py')
    assert second.lists == ()
    assert 'round1=work_dirs/cct-strong_mbv2_mine round2=' in second.commands[-1]
    assert any(f'train_cfg: not as in {first.file}' in warning for warning in second.warnings)
    again = write(data, force=True)  # writes the latest round anew
    assert again.file == second.file and again.lists == ()
    assert {path: path.read_text() for path in before} == before
    # both settings train on what is there, and validate on what they did
    for written in (first, second):
        dataset = load_config(str(written.file), {}).train_dataloader.dataset.labeled
        labeled = DATASETS.build({**dataset, 'pipeline': []})
        names = [Path(labeled.get_data_info(i)['img_path']).stem for i in range(len(labeled))]
        assert names == [str(index) for index in range(0 if has_val else 1, 6)]


@pytest.mark.parametrize(
    ('images', 'expected'),
    [((64, 40), (64, 40)), ((1000, 500), (512, 256)), ((30, 2000), (8, 512))],
)
def test_the_default_size_is_the_images_in_multiples_of_the_stride(images, expected):
    assert module._default_size(images, 8) == expected


@pytest.mark.parametrize(
    ('images', 'backbone', 'expected'),
    [
        ((328, 200), 'mbv2', (168, 104)),
        ((328, 200), 'r18', (328, 200)),
        ((328, 184), 'mbv2', (328, 184)),  # a half would be too small to learn from
    ],
)
def test_crops_are_half_of_the_images_where_there_is_no_gpu(images, backbone, expected):
    assert module._default_crop(images, BACKBONES[backbone]) == expected


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(context=('crak',)), "--context: no class 'crak'; did you mean crack"),
        (dict(size=(64, 30)), '--size 64x30: expected multiples of 8.* such as 64x32'),
        (dict(size=(64, 40), backbone='mit-b0'), 'multiples of 16.* such as 64x48'),
        (dict(crop=(30, 32)), '--crop 30x32: expected multiples of 8.* such as 32x32'),
        (dict(size=(0, 0)), '--size 0x0: expected multiples of 8.* such as 8x8'),
    ],
)
def test_options_that_do_not_fit_are_refused(data, options, message):
    with pytest.raises(UserError, match=message):
        write(data, **options)
    assert not (data.parents[1] / 'configs').exists()


def test_images_without_masks_are_needed(data):
    for index in range(4, 8):
        (data / f'images/{index}.jpg').unlink()
    with pytest.raises(UserError, match=r'every image has a mask; expected .*, or --method sup'):
        write(data)
    assert load(data, method='supervised').train_dataloader.dataset.get('unlabeled') is None


def test_masks_may_have_a_suffix(data):
    for path in data.rglob('masks/*.png'):
        path.rename(path.with_name(f'{path.stem}_mask.png'))
    config = load(data, mask_suffix='_mask.png')
    halves = config.train_dataloader.dataset
    for dataset in (halves.labeled, halves.unlabeled, config.val_dataloader.dataset):
        assert dataset.mask_suffix == '_mask.png'


def test_one_mask_is_too_few_to_hold_some_out(data):
    (data / 'val').rename(data / 'other')
    for index in (1, 2, 3):
        (data / 'masks' / f'{index}.png').unlink()
    with pytest.raises(UserError, match='one mask, and no folder val'):
        write(data)


@pytest.mark.parametrize(('pixels', 'is_rare'), [(40, True), (60, False), (0, False)])
def test_a_rare_class_gets_a_loss_that_counts_classes(data, tmp_path, pixels, is_rare):
    """Of 2560 pixels 40 are below two per cent; a class that no mask shows is not rare."""
    for path in (data / 'masks').iterdir():
        mask = np.arange(40 * 64) % 2
        mask[:pixels] = 2
        save(path, mask.reshape(40, 64).astype(np.uint8))
    weights = tmp_path / 'weights.pth'
    torch.save(MODELS.build(load(data).model.backbone).state_dict(), weights)
    written = write(data, weights=str(weights), force=True)
    assert any(line.startswith('rare: rust;') for line in written.notes) == is_rare
    assert ('# rust: below 2% of' in written.file.read_text()) == is_rare
    for method in ('cct-strong', 'supervised'):
        model = load_config(str(written.file), {'method': method}).model
        assert model.backbone.init_cfg.checkpoint == str(weights)
        losses = model.decode_head.loss_decode
        kinds = [loss.type for loss in losses] if is_rare else [losses.type]
        assert kinds == ['MeanCrossEntropy', 'BatchLovasz'][: len(kinds)]


def test_in_a_checkout_the_bases_and_tools_are_its_own(data, project_root, monkeypatch):
    monkeypatch.chdir(project_root)
    # what lies below configs is named from there, what lies elsewhere by the package
    for out, root in (('configs/mine', '../_base_'), ('configs/deep/mine', '../../_base_')):
        assert module._bases('cct', 'adamw', out)[0] == f'{root}/models/cct.py'
    own = module._bases('cct', 'adamw', str(data))
    assert "__import__('mmseg_cct').bases(" in own and 'mmseg_cct::_base_/models/cct.py' in own


def test_the_tool_says_what_it_found_and_what_to_run(data, capsys, monkeypatch):
    monkeypatch.chdir(data.parents[1])
    run_tool('new_config', 'data/mine', '--classes', *CLASSES, 'bolt', '--size', '64x40')
    assert len(Path('configs/mine/cct-strong_mbv2_mine.py').read_text().splitlines()) <= 130
    lines = capsys.readouterr().out.splitlines()
    found = '4 labelled and 4 unlabelled images of 64x40 pixels (median), 2 to validate on'
    assert lines[0] == f'data/mine: {found}'
    assert any('bolt (1 of ' in line and 'in none of the' in line for line in lines)
    assert lines[-4:] == [
        'Next:',
        '  mmseg-cct train configs/mine/cct-strong_mbv2_mine.py',
        '  mmseg-cct train configs/mine/cct-strong_mbv2_mine.py --method supervised',
        '  mmseg-cct report supervised=work_dirs/supervised_mbv2_mine '
        'cct-strong=work_dirs/cct-strong_mbv2_mine --out work_dirs/report',
    ]
    with pytest.raises(SystemExit):
        run_tool('new_config', 'data/mine', '--classes', *CLASSES, '--size', '64')
    assert '64; expected WIDTHxHEIGHT' in capsys.readouterr().err


def test_objects_that_would_vanish_get_crops_at_full_size_and_windows(tmp_path):
    data = tmp_path / 'mine'
    for index in range(4):
        save(data / 'images' / f'{index}.png', np.zeros((800, 1200, 3), np.uint8))
        mask = np.zeros((800, 1200), np.uint8)
        mask[::40, ::40] = 1
        if index < 3:
            save(data / 'masks' / f'{index}.png', mask)
    classes, out = ('background', 'dot'), str(tmp_path / 'configs/mine')
    written = new_config(str(data), out, Choices(classes, from_scratch=True))
    config = load_config(str(written.file), {})
    assert config.model.test_cfg == dict(mode='slide', crop_size=(336, 512), stride=(224, 341))
    with DefaultScope.overwrite_default_scope('mmseg'):
        pairs = DATASETS.build(config.train_dataloader.dataset)
        val = DATASETS.build(config.val_dataloader.dataset)
    for part in (pairs.labeled, pairs.unlabeled):
        assert part[0]['inputs'].shape == (3, 168, 256)
    assert val[0]['inputs'].shape == (3, 800, 1200)
    assert any('in pixels: dot 1.0; narrower than 8' in line for line in written.warnings)
    assert any(line.startswith('objects would vanish at 512x336') for line in written.notes)
    # a chosen size is kept
    again = new_config(str(data), out, Choices(classes, size=(512, 336), force=True))
    assert load_config(str(again.file), {}).model.test_cfg == dict(mode='whole')
    assert any('without --size' in line for line in again.warnings)


def test_the_names_of_classes_are_written_for_imports(data):
    assert read_table(data) is None
    write(data, from_scratch=True)
    assert tuple(read_table(data).colours) == CLASSES
    written = new_config(str(data), str(data.parents[1] / 'more'), Choices((*CLASSES, 'bolt')))
    assert written.lists[-1] == data / 'classes.json'
    assert tuple(read_table(data).colours) == (*CLASSES, 'bolt')
    with pytest.raises(UserError, match=r'classes\.json has .* no --classes, or --force'):
        write(data, classes=('a', 'b', 'c'))


def test_a_setting_in_another_folder_has_work_directories_of_its_own(data):
    for out, root in (('mine', 'work_dirs'), ('other', 'work_dirs/other')):
        written = new_config(str(data), str(data.parents[1] / out), Choices(CLASSES))
        name = 'cct-strong_mbv2_mine'
        runs = f'supervised={root}/supervised_mbv2_mine cct-strong={root}/{name}'
        assert written.commands[-1].endswith(f'{runs} --out {root}/report')
        place = f' --work-dir {root}/{name}' if out == 'other' else ''
        assert written.commands[0].endswith(f'{name}.py{place}')


def test_the_tool_goes_on_with_the_options_of_the_round_before(data, capsys, monkeypatch):
    monkeypatch.chdir(data.parents[1])
    options = ('--iters', '24', '--crop', '32x32', '--from-scratch', '--batch-size', '2')
    run_tool('new_config', 'data/mine', '--classes', *CLASSES, *options)
    capsys.readouterr()
    shutil.copy(data / 'masks/1.png', data / 'masks/5.png')
    run_tool('new_config', 'data/mine', '--iters', '48')
    printed = capsys.readouterr().out
    assert 'note: options not given are those of configs/mine/cct-strong_mbv2_mine.py' in printed
    config = load_config('configs/mine/cct-strong_mbv2_mine-round2.py', {})
    assert (config.train_cfg.max_iters, config.crop_size) == (48, (32, 32))
    assert config.train_dataloader.batch_size == 2 and config.model.backbone.init_cfg is None


def test_a_class_on_one_side_only_is_told(data):
    for index in (0, 1, 2, 3):
        ids = read_mask(data / f'masks/{index}.png')
        Image.fromarray(np.where(ids == 1, 0, ids)).save(data / f'masks/{index}.png')
    assert any('in masks to validate on only' in line for line in write(data).warnings)


def test_a_class_named_like_pixels_without_a_label_is_asked_about(data):
    names = ['void', *CLASSES[1:]]
    expected = (
        'class void: named like pixels without a label, would be trained; expected.*'
        rf'import_masks\S* {data}/masks --images {data}/images --colors void=0'
    )
    with pytest.raises(UserError, match=expected):
        write(data, classes=names)
    write(data, classes=names, context=['void'])
