import zipfile

import exports
import pytest
from exports import save
from importing import labelme

from mmseg_cct.annotations.importer import import_masks
from mmseg_cct.annotations.readers import require_reader
from mmseg_cct.annotations.source import Source
from mmseg_cct.errors import UserError


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / 'x.zip', 'w', zipfile.ZIP_DEFLATED) as file:
        file.writestr('annotations.xml', bytes(2**26 + 1))
    with pytest.raises(UserError, match=r'x\.zip: annotations\.xml: 67108865 bytes packed into'):
        require_reader(Source(tmp_path / 'x.zip'))
    data = (tmp_path / 'x.zip').read_bytes()
    with zipfile.ZipFile(tmp_path / 'many.zip', 'w', zipfile.ZIP_DEFLATED) as file:
        for number in range(5):
            file.writestr(f'{number}.json', bytes(2**24))
    source = Source(tmp_path / 'many.zip')
    with pytest.raises(UserError, match=r'many\.zip: 4\.json: \d+ bytes packed into \d+ up to'):
        [source.read(name) for name in source.names]
    save(tmp_path / 'cut.zip', data[:50] + b'\0' * 50 + data[100:])
    with pytest.raises(UserError, match=r'cut\.zip'):
        require_reader(Source(tmp_path / 'cut.zip'))


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16', 'windows-1251'])
def test_text_is_read_in_the_encoding_that_it_names(tmp_path, encoding):
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?><a>дорога</a>'
    save(tmp_path / 'x.xml', declared.encode(encoding))
    assert Source(tmp_path / 'x.xml').xml('x.xml').text == 'дорога'
    if 'utf' in encoding:
        save(tmp_path / 'y.json', '{"label": "дорога"}'.encode(encoding))
        assert Source(tmp_path).json('y.json') == dict(label='дорога')


def test_an_export_may_become_the_data_folder_itself(tmp_path, photos):
    labelme(tmp_path / '1.json', imagePath='images/a/1.jpg')
    photos.rename(tmp_path / 'images')
    for counts in ((1, 0), (0, 1)):  # the second time the folder has a classes.json and masks, too
        done = import_masks(tmp_path, tmp_path, rest='background')
        assert ([], *counts) == (done.failed, done.new, done.unchanged)


def test_images_in_a_zip_are_taken(tmp_path, photos):
    archive = exports.cvat(tmp_path)
    with zipfile.ZipFile(archive, 'a') as file:
        for name in exports.NAMES:
            file.write(photos / f'{name}.jpg', f'images/{name}.jpg')
    done = import_masks(archive, tmp_path / 'out', rest='ignore')
    assert not done.failed and done.new == 2
    assert (tmp_path / 'out/images/images/a/1.jpg').is_file()
    with zipfile.ZipFile(archive, 'a') as file:
        file.write(photos / 'a/1.jpg', '../../evil.jpg')
        file.writestr('/evil.jpg', b'')
    with pytest.raises(UserError, match=r"'/evil\.jpg': leads out of the folder"):
        import_masks(archive, tmp_path / 'other', rest='ignore')
