"""Images and masks are read as they are in the file, and bad files are named."""

import os

import cv2
import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError
from tiff import pixels_of

from mmseg_cct.datasets.files import images
from mmseg_cct.datasets.files.image_format import UnsuitableImage
from mmseg_cct.datasets.files.images import (
    ORIENTATION,
    decode_image,
    explain_unreadable,
    image_size,
    open_image,
    read_image,
    read_mask,
    select_channels,
)
from mmseg_cct.errors import UserError

BYTES = pixels_of(3, 8, dtype='uint8')


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
            (lambda path: None, 'no such file; expected the mask there'),
            (lambda path: path.write_text('text'), r'cannot be read \(.*\); expected a readable'),
            (image_of('F', format='TIFF'), 'a mask of Pillow mode F; expected one channel of int'),
            (
                image_of('RGB', (7, 7, 7)),
                r'mode RGB; expected .* palette PNG\): its three channels are equal',
            ),
            (
                image_of('RGB', (7, 7, 8)),
                r'mode RGB; expected .* palette PNG\): tools/import_masks.py turns',
            ),
            # it does not keep ids, whatever its name is
            (image_of('L', 1, format='JPEG'), 'a JPEG, .*; expected a PNG'),
            (
                image_of('L', format='TIFF', save_all=True, append_images=[Image.new('L', (8, 8))]),
                '2 pages, .*; expected a mask with one page',
            ),
            (image_of('L', 1, exif=_exif(3)), 'EXIF orientation 3, .*; expected a mask without'),
        ],
    )
    def test_what_is_no_mask(self, tmp_path, write, message):
        write(tmp_path / 'a.png')
        with pytest.raises(UserError, match=rf'a\.png: .*{message}'):
            read_mask(tmp_path / 'a.png')

    @pytest.mark.parametrize('backend_args', [None, dict(backend='local')])
    @pytest.mark.parametrize('mode', ['1', 'P', 'L', 'I;16'])
    def test_gives_the_ids_of_the_file_or_names_a_pipeline_that_reads_others(
        self, tmp_path, mode, backend_args
    ):
        kind = {'1': bool, 'I;16': np.uint16}.get(mode, np.uint8)
        ids = np.array([[0, 1, 1], [1, 0, 1]], kind)
        image = Image.fromarray(ids)
        if mode == 'P':  # indices, not colours
            image.putpalette([7, 8, 9] * 256)
        assert image.mode == mode
        image.save(tmp_path / 'a.png')
        read = read_mask(tmp_path / 'a.png', backend_args)
        assert np.array_equal(read, ids) and read.dtype.itemsize == ids.itemsize
        read[0, 0] = 1  # transforms may write into it
        if mode in ('L', 'I;16'):
            assert np.array_equal(read_mask(tmp_path / 'a.png', backend='cv2'), ids)
            return
        line = rf"imdecode_backend='cv2' reads other ids .* \(Pillow mode {mode}\); expected Load"
        with pytest.raises(UserError, match=line):
            read_mask(tmp_path / 'a.png', backend='cv2')


def test_pillows_word_counts_only_on_files_that_are_cut_off(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)
    data = cv2.imencode('.jpg', pixels)[1].tobytes()
    assert decode_image(data).shape == (32, 32, 3)
    assert decode_image(data, 'grayscale', 'pillow').shape == (32, 32)
    with pytest.raises(OSError, match='truncated'):
        decode_image(data[:-300])


def test_an_unreadable_file_is_explained_in_one_line_that_names_it_once():
    line = explain_unreadable('a.jpg', 'image', OSError('a.jpg is\nbroken'))
    assert line == 'a.jpg: cannot be read (is broken); expected a readable image'


@pytest.mark.parametrize(
    ('read', 'error'),
    [
        (lambda path: Image.open(path).load(), None),  # the file would start it
        (read_image, ValueError),
        (read_mask, UserError),
        (lambda path: open_image(path).load(), UnidentifiedImageError),
        (lambda path: open_image(path, dict(backend='local')).load(), UnidentifiedImageError),
        (lambda path: image_size(str(path), None, decode=False), UserError),
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


def test_channels_are_selected_and_scaled():
    pixels = np.array([[[0, 100, 200, 300]]], 'uint16')
    for channels, expected in {
        (0, 1, 2, 3): [0, 0, 127.5, 255],
        (1,): [0],
        (1, 2, 3): [255, 127.5, 0],  # BGR
        (2, 2, 2): [127.5] * 3,
    }.items():
        found = select_channels(pixels, channels, (100, 300))
        assert found.dtype == np.float32 and found[0, 0].tolist() == expected
    assert np.array_equal(select_channels(BYTES, (2, 0)), BYTES[..., [2, 0]])
    assert select_channels(BYTES, (0, 1, 2), (0, 255)).dtype == np.float32


@pytest.mark.parametrize(
    ('pixels', 'channels', 'limits', 'message'),
    [
        (pixels_of(4), (0, 4), (0, 9), '^4 channels; expected 5 or more'),
        (pixels_of(4), (0,), None, '^values of type uint16; expected 8 bits'),
        (BYTES, (0, 1, 2), (0, 4095), r'^values of 8 bits; .*value_range is \(0, 4095\)'),
    ],
)
def test_missing_channels_and_depth_are_named(pixels, channels, limits, message):
    """8 bits are not taken for the lowest of 12."""
    with pytest.raises(UnsuitableImage, match=message):
        select_channels(pixels, channels, limits)


@pytest.fixture(params=['jpg', 'png'])
def image(request, tmp_path):
    path = tmp_path / f'a.{request.param}'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (16, 24, 3), np.uint8))
    return path


def test_a_truncated_image_with_a_good_header_and_bytes_after_the_end(image):
    data = image.read_bytes()
    image.write_bytes(data[:-100])
    with pytest.raises(UserError, match=rf'^{image}: cannot be read \('):
        image_size(str(image), None, decode=False)
    image.write_bytes(data + bytes(10_000))  # some cameras append a film
    assert image_size(str(image), None, decode=False) == (24, 16)


def test_a_tag_turns_an_image_and_may_keep_its_size(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new('RGB', (24, 16)).save(tmp_path / 'a.png', exif=turned)
    assert image_size(str(tmp_path / 'a.png'), None, decode=False) == (16, 24)
    assert not images.is_turned(str(tmp_path / 'a.png'), None, None)
    Image.new('RGB', (16, 16)).save(tmp_path / 'b.png', exif=turned)
    assert images.is_turned(str(tmp_path / 'b.png'), None, None)
