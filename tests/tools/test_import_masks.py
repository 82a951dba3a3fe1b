import exports
import pytest
from world import run_tool


def test_an_export_becomes_a_setting(tmp_path, capsys):
    photos, out = exports.make_photos(tmp_path), tmp_path / 'mine'
    source = exports.cvat(tmp_path)
    run_tool('import_masks', source, '--images', photos, '--rest', 'background', '--out', out)
    said = capsys.readouterr().out
    assert f'{out}: 2 new masks, 3 images linked' in said
    assert 'polyline, ignored within its extent: 2 in 2 images: a/1.jpg, b/1.jpg' in said
    assert f'new-config {out}' in said
    run_tool('new_config', out, '--out', tmp_path / 'configs')
    said = capsys.readouterr().out
    assert '2 labelled and 1 unlabelled images' in said and '| road |' in said
    file = exports.coco(tmp_path / 'val')
    run_tool('import_masks', file, '--images', photos, '--out', out / 'val')
    said = capsys.readouterr().out  # each image in a folder `val` needs a mask
    assert f'warning: {out}/val/images/unlabelled.jpg: ' in said and 'Next:' not in said
    (setting,) = (tmp_path / 'configs').glob('*.py')
    assert "context_classes=('background',)" in setting.read_text()


def test_masks_that_differ_are_kept_and_told(tmp_path, capsys):
    photos, out = exports.make_photos(tmp_path), tmp_path / 'mine'
    run = ['import_masks', exports.coco(tmp_path), '--out', out]
    run_tool(*run, '--images', photos, '--rest', 'background')
    text = (tmp_path / 'x.json').read_text()
    (tmp_path / 'x.json').write_text(text.replace('"category_id": 3', '"category_id": 9'))
    with pytest.raises(SystemExit, match='2'):
        run_tool(*run)
    said = capsys.readouterr()
    assert '2 masks unlike those there' in said.out and 'earlier masks, kept: 18 in 2' in said.out
    assert 'error: 2 masks of earlier imports differ and were kept; --overwrite' in said.err
    run_tool(*run, '--overwrite')


def test_a_wrong_option_is_told(tmp_path, refused):
    source = exports.coco(tmp_path)
    for options, message in (
        (['--rename', 'car'], "'car'; expected OLD=NEW, or OLD= to ignore it"),
        (['--rename', 'car=a', 'car=b'], '--rename: a name is there twice'),
        (['--colors', 'car=1,2'], "'car=1,2'; expected NAME=R,G,B or NAME=GREY"),
        (['--colors', 'car=256'], "'car=256'; expected numbers from 0 to 255"),
    ):
        assert message in refused('import_masks', source, '--out', tmp_path / 'out', *options)
