import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from folders import CLASSES, load, save, write
from mmengine.registry import DefaultScope
from mmseg.registry import DATASETS
from PIL import Image

from mmseg_cct.annotations.class_table import read_table
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError
from mmseg_cct.writer.choices import Choices, plain_name
from mmseg_cct.writer.new_config import new_config


def test_any_name_of_a_folder_will_do(data):
    renamed = data.rename(data.with_name("it's"))
    assert plain_name(str(renamed)) == 'it-s'
    written = new_config(f'{renamed}/', str(data.parents[1] / "own's configs"), Choices(CLASSES))
    labeled = load_config(str(written.file), {}).train_dataloader.dataset.labeled
    assert labeled.image_dir == f'{renamed}/images'
    assert shlex.split(written.commands[0])[-1] == str(written.file)


def test_the_config_is_that_of_the_folder(data):
    for path in data.rglob('masks/*.png'):
        path.rename(path.with_name(f'{path.stem}_mask.png'))
    for path in data.rglob('images/*.jpg'):
        path.rename(path.with_name(f'{path.stem}_0000.jpg'))
    suffixes = dict(image_suffix='_0000', mask_suffix='_mask.png')
    written = write(data, size=(64, 32), iters=40, batch_size=2, **suffixes)
    config = load_config(str(written.file), {})
    labeled, unlabeled = (config.train_dataloader.dataset[x] for x in ('labeled', 'unlabeled'))
    assert labeled.classes == config.test_dataloader.dataset.classes == CLASSES
    assert labeled.image_dir == unlabeled.image_dir == f'{data}/images'
    assert (labeled.subset, unlabeled.subset) == ('labeled', 'unlabeled')
    assert config.val_dataloader.dataset.mask_dir == f'{data}/val/masks'
    for part in (labeled, unlabeled, config.val_dataloader.dataset):
        assert (part.image_suffix, part.mask_suffix) == ('_0000', '_mask.png')
    assert config.model.decode_head.num_classes == 3
    assert config.model.auxiliary_head.context_classes == ('background',)
    assert config.model.data_preprocessor.size == labeled.pipeline[3].crop_size == (32, 64)
    assert labeled.pipeline[3].cat_max_ratio == 0.75
    assert 'cat_max_ratio' not in unlabeled.pipeline[2]
    # prediction reads the pipeline of the top level
    for pipeline in (
        config.val_dataloader.dataset.pipeline, config.test_pipeline, config.tta_pipeline,
    ):  # fmt: skip
        assert pipeline[1] == dict(type='Resize', scale=(64, 32), keep_ratio=True)
    assert config.param_scheduler.end == config.train_cfg.max_iters == 40
    assert config.train_cfg.val_interval == 5
    assert config.train_dataloader.batch_size == 2
    assert config.default_hooks.teacher.decay == 0.99 and config.default_hooks.ramp_up


@pytest.mark.parametrize('method', ['cct-strong', 'own-target', 'supervised'])
def test_a_config_of_a_method_is_that_method_over_a_config_of_cct(data, method):
    written_config = load(data, method=method)
    composed = load_config(str(write(data, method='cct').file), {'method': method})
    for config in (written_config, composed):
        for part in (config.default_hooks, config.train_dataloader.dataset, config.model):
            for key in [key for key, value in part.items() if value is None]:
                del part[key]
    for part in ('model', 'train_dataloader', 'default_hooks'):
        assert written_config[part] == composed[part]


def test_a_preset_is_a_length_and_a_size(data):
    config = load(data, preset='quick')
    assert (config.train_cfg.max_iters, config.train_dataloader.batch_size) == (600, 4)
    assert load(data, preset='quick', iters=7, force=True).train_cfg.max_iters == 7


def test_without_a_folder_to_validate_on_a_fifth_of_the_masks_is_held_out(data):
    (data / 'val').rename(data / 'other')
    written = write(data)
    val, table = written.lists
    assert table == data / 'classes.json'
    assert val.read_text() == '0\n'
    assert tuple(read_table(data).colors) == CLASSES
    with pytest.raises(UserError, match=f'^{written.file}: exists, '):
        write(data, iters=3)
    config = load_config(str(written.file), {})
    assert config.train_dataloader.dataset.labeled.exclude == str(val)
    assert config.val_dataloader.dataset.ann_file == str(val)
    assert config.val_dataloader.dataset.image_dir == f'{data}/images'
    # another config validates on the same images, and this one trains on masks that come in
    shutil.copy(data / 'masks/1.png', data / 'masks/5.png')
    assert write(data, method='cct').lists == () and val.read_text() == '0\n'
    labeled = DATASETS.build({**config.train_dataloader.dataset.labeled, 'pipeline': []})
    names = [Path(labeled.get_data_info(i)['img_path']).stem for i in range(len(labeled))]
    assert names == ['1', '2', '3', '5']
    (data / 'masks/0.png').unlink()
    with pytest.raises(UserError) as caught:
        write(data, method='supervised')
    assert caught.value.problems[0].key == val


def _names(settings):
    dataset = DATASETS.build({**settings, 'pipeline': []})
    return [Path(dataset.get_data_info(i)['img_path']).stem for i in range(len(dataset))]


@pytest.mark.parametrize('has_val', [True, False])
def test_partly_drawn_images_are_labelled_and_unlabelled_but_never_validated_on(data, has_val):
    if not has_val:
        (data / 'val').rename(data / 'other')
    for index in range(8):  # all have masks; 0 to 3 finished ones
        mask = np.arange(40 * 64).reshape(40, 64) % 3
        mask[: 24 if index > 3 else 16] = 255
        save(data / f'masks/{index}.png', mask.astype(np.uint8))
    written = write(data)
    [partly] = [path for path in written.lists if path.name.endswith('_partly.txt')]
    pairs = load_config(str(written.file), {}).train_dataloader.dataset
    validated = [] if has_val else _names(load_config(str(written.file), {}).val_dataloader.dataset)
    trained = [str(index) for index in range(8) if str(index) not in validated]
    assert _names(pairs.labeled) == trained
    assert sorted(_names(pairs.unlabeled)) == [name for name in trained if int(name) > 3]
    assert partly.read_text().split() == [name for name in trained if int(name) > 3]
    # the list stays as it was: a resumed training has the same images
    save(data / 'masks/7.png', np.zeros((40, 64), np.uint8))
    assert '7' in validated or '7' in _names(pairs.unlabeled)
    assert not any('_partly' in path.name for path in write(data, method='supervised').lists)


@pytest.mark.parametrize(
    ('options', 'key'),
    [
        (dict(context=('crak',)), '--context'),
        (dict(weights='nowhere.pth'), '--weights'),
        (dict(backbone='dinov2-s-frozen', from_scratch=True, size=(64, 32)), '--from-scratch'),
        (dict(classes=('a', 'b', 'c')), '--classes a b c'),
    ],
)
def test_options_that_do_not_fit_are_refused(data, options, key):
    (data / 'classes.json').write_text('{"classes": ["background", "crack", "rust"]}')
    with pytest.raises(UserError) as caught:
        write(data, **options)
    assert caught.value.problems[0].key == key
    assert not (data.parents[1] / 'configs').exists()


@pytest.mark.parametrize(('pixels', 'is_rare'), [(40, True), (60, False)])
def test_a_rare_class_gets_a_loss_that_counts_classes(data, pixels, is_rare):
    """Of 2560 pixels 40 are below two per cent."""
    for path in (data / 'masks').iterdir():
        mask = np.arange(40 * 64) % 2
        mask[:pixels] = 2
        save(path, mask.reshape(40, 64).astype(np.uint8))
    written = write(data)
    assert any(line.startswith('rare: rust;') for line in written.notes) == is_rare
    losses = load_config(str(written.file), {'method': 'supervised'}).model.decode_head.loss_decode
    kinds = [loss.type for loss in losses] if is_rare else [losses.type]
    assert kinds == ['MeanCrossEntropy', 'BatchLovasz'][: len(kinds)]


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


@pytest.mark.parametrize('part', ['val', 'Validation', None])
def test_the_users_own_split_is_kept(data, part):
    shutil.rmtree(data / 'val')
    if part:
        for name in ('images/2.jpg', 'masks/2.png', 'images/3.jpg', 'masks/3.png'):
            path = data / name
            path.parent.joinpath(part).mkdir(exist_ok=True)
            path.rename(path.parent / part / path.name)
        if part == 'Validation':
            (data / 'masks').rename(data / 'annotations')
    else:  # of an import
        (data / 'val.txt').write_text('2\n3\n')
    written = write(data)
    config = load_config(str(written.file), {})
    val = Path(config.val_dataloader.dataset.ann_file)
    assert [Path(line).name for line in val.read_text().split()] == ['2', '3']
    assert config.train_dataloader.dataset.labeled.exclude == str(val)
    assert any(f'/{part}' in note or str(data / 'val.txt') in note for note in written.notes)


@pytest.fixture
def judged(data, monkeypatch):
    """The data with masks for six images, whose top is class 0 and bottom class 1."""
    for index in range(6):
        ids = np.repeat(np.uint8([0, 1]), [10 + 3 * index, 30 - 3 * index])[:, None].repeat(64, 1)
        save(data / f'masks/{index}.png', ids)
        noise = np.random.default_rng(index).integers(0, 40, (40, 64, 3), np.uint8)
        save(data / f'images/{index}.jpg', noise + 180 * ids[..., None])

    def encode(picture):
        return picture[::5, ::5].astype(np.float32)

    monkeypatch.setattr('mmseg_cct.writer.folder_plan.load_encoder', lambda *_: encode)
    return data


def test_masks_that_the_others_contradict_are_named(judged):
    assert not [line for line in write(judged).warnings if 'doubtful' in line]
    ids = np.asarray(Image.open(judged / 'masks/3.png'))
    save(judged / 'masks/3.png', 1 - ids)
    shutil.copy(judged / 'images/1.jpg', judged / 'images/twin.jpg')
    save(judged / 'masks/twin.png', ids)
    *_, pair, name = write(judged, force=True).warnings
    assert '1 and twin' in pair and '3' in name
    (pair_alone,) = set(write(judged, force=True, from_scratch=True).warnings) & {pair}
    assert pair_alone


def test_few_labels_start_from_a_preview_without_what_is_held_out(judged, monkeypatch):
    shutil.rmtree(judged / 'val')
    written = write(judged)
    preview, training = written.commands[:2]
    val_list = written.file.with_name('val.txt')
    words = ['preview', str(judged), f'--held-out={val_list}', '--out', 'preview']
    assert shlex.split(preview)[1:] == words and training.endswith('--weak-masks preview/masks')
    monkeypatch.setattr('mmseg_cct.writer.folder_plan._FEW', 3)
    written = write(judged, force=True)
    assert written.commands[0] == preview and '--weak-masks' not in written.commands[1]
