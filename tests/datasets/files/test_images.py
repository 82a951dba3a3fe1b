import os

import cv2
import numpy as np
import pytest
from PIL import Image

from mmseg_cct.datasets.files.image_format import ORIENTATION
from mmseg_cct.datasets.files.images import (
    decode_image,
    image_size,
    read_image,
    read_mask,
)
from mmseg_cct.errors import UserError


def _exif(orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def image_of(mode, colour=0, **options):
    return lambda path: Image.new(mode, (8, 8), colour).save(path, **options)


class TestReadMask:
    @pytest.mark.parametrize(
        ('write', 'message'),
        [
            (lambda path: None, 'no such file'),
            (lambda path: path.write_text('text'), r'cannot be read \('),
            (image_of('F', format='TIFF'), 'a mask of Pillow mode F;'),
            (image_of('RGB', (7, 7, 8)), 'mode RGB; .* mmseg-cct import-masks turns'),
            # it does not keep ids, whatever its name is
            (image_of('L', 1, format='JPEG'), 'a JPEG'),
            (image_of('L', 1, exif=_exif(3)), 'EXIF orientation 3'),
        ],
    )
    def test_what_is_no_mask(self, tmp_path, write, message):
        write(tmp_path / 'a.png')
        with pytest.raises(UserError, match=rf'a\.png: .*{message}'):
            read_mask(tmp_path / 'a.png')

    @pytest.mark.parametrize('mode', ['1', 'P', 'L', 'I;16'])
    def test_gives_the_ids_of_the_file(self, tmp_path, mode):
        dtype = {'1': bool, 'I;16': np.uint16}.get(mode, np.uint8)
        ids = np.array([[0, 1, 1], [1, 0, 1]], dtype)
        image = Image.fromarray(ids)
        if mode == 'P':  # indices, not colours
            image.putpalette([7, 8, 9] * 256)
        assert image.mode == mode
        image.save(tmp_path / 'a.png')
        read = read_mask(tmp_path / 'a.png', dict(backend='local'))
        assert np.array_equal(read, ids) and read.dtype.itemsize == ids.itemsize
        read[0, 0] = 1  # transforms may write into it


@pytest.mark.parametrize(
    ('read', 'error'),
    [
        (lambda path: Image.open(path).load(), None),  # the file would start it
        (read_image, ValueError),
        (read_mask, UserError),
    ],
)
def test_a_postscript_file_named_png_starts_no_program(read, error, tmp_path, monkeypatch):
    ran, program = tmp_path / 'ran', tmp_path / 'bin/gs'
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntouch {ran}\n')
    program.chmod(0o755)
    monkeypatch.setenv('PATH', str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr('PIL.EpsImagePlugin.gs_binary', None)  # Pillow looks for it again
    Image.new('RGB', (8, 8)).save(tmp_path / 'x.png', format='EPS')
    with pytest.raises(error or Exception):
        read(tmp_path / 'x.png')
    assert ran.exists() == (error is None)


@pytest.mark.parametrize('file_format', ['jpg', 'png'])
def test_a_truncated_image_with_a_good_header_and_bytes_after_the_end(tmp_path, file_format):
    image = tmp_path / f'a.{file_format}'
    cv2.imwrite(str(image), np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8))
    data = image.read_bytes()
    assert decode_image(data, 'grayscale', 'pillow').shape == (16, 24)
    image.write_bytes(data[:-100])
    with pytest.raises(OSError, match='truncated'):
        read_image(image)
    with pytest.raises(UserError, match=rf'^{image}: cannot be read \('):
        image_size(str(image), None, decode=False)
    image.write_bytes(data + bytes(10_000))  # some cameras append a film
    assert image_size(str(image), None, decode=False) == (24, 16)


@pytest.mark.parametrize('file_format', ['png', 'jpg'])
@pytest.mark.parametrize('tag', [3, 6])
def test_the_size_of_an_image_is_that_once_it_is_turned(tmp_path, file_format, tag):
    path = str(tmp_path / f'a.{file_format}')
    Image.new('RGB', (24, 16)).save(path, exif=_exif(tag))
    assert image_size(path, None, decode=False) == cv2.imread(path).shape[1::-1]


def test_a_colour_of_palettes_means_one_id(tmp_path):
    red, blue = (255, 0, 0), (0, 0, 255)
    id_of_color = {}
    for name, colors in (('a', (red, blue)), ('b', (red, blue)), ('c', (blue, red))):
        mask = Image.fromarray(np.array([[1, 2, 7, 255]], np.uint8))
        mask.putpalette([0, 0, 0, *colors[0], *colors[1], *[0] * 3 * 252])
        mask.save(tmp_path / f'{name}.png')
    for name in 'ab':
        read_mask(tmp_path / f'{name}.png', id_of_color=id_of_color)
    with pytest.raises(UserError, match=r'c\.png: the palette'):
        read_mask(tmp_path / 'c.png', id_of_color=id_of_color)
