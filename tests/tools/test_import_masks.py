import exports


def test_a_wrong_option_is_told(tmp_path, refused):
    source = exports.coco(tmp_path)
    for options, message in (
        (['--rename', 'car'], "--rename: 'car'"),
        (['--rename', 'car=a', 'car=b'], '--rename: '),
        (['--colors', 'car=1,2'], "--colors: 'car=1,2'"),
        (['--colors', 'car=256'], "--colors: 'car=256'"),
    ):
        assert message in refused('import_masks', source, '--out', tmp_path / 'out', *options)
