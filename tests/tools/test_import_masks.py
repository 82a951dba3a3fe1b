import exports
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


def test_a_wrong_option_is_told(tmp_path, refused):
    source = exports.coco(tmp_path)
    for options, message in (
        (['--rename', 'car'], "--rename: 'car'"),
        (['--rename', 'car=a', 'car=b'], '--rename: '),
        (['--colors', 'car=1,2'], "--colors: 'car=1,2'"),
        (['--colors', 'car=256'], "--colors: 'car=256'"),
    ):
        assert message in refused('import_masks', source, '--out', tmp_path / 'out', *options)
