import sys

import cv2
import doubtful_masks
import numpy as np


def test_right_masks_are_not_named_and_those_of_a_mirrored_image_are(monkeypatch, tmp_path, capsys):
    for folder in ('images', 'masks'):
        (tmp_path / folder).mkdir()
    for index in range(40):
        is_red = np.arange(40) < 20
        is_red = is_red[::-1] if index % 2 else is_red
        photo = np.random.default_rng(index).integers(0, 40, (24, 40, 3), np.uint8)
        photo[:, is_red, 2] += 200
        photo[:, ~is_red, 0] += 200
        mask = np.tile(is_red, (24, 1)).astype(np.uint8)
        mask[0] = 255
        cv2.imwrite(str(tmp_path / f'images/{index}.png'), photo)
        cv2.imwrite(str(tmp_path / f'masks/{index}.png'), mask)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr(doubtful_masks, 'NUM_MASKS', (10,))
    monkeypatch.setattr(
        doubtful_masks, 'load_encoder',
        lambda model, sizes: lambda picture: cv2.resize(picture, (10, 6)).astype(np.float32),
    )  # fmt: skip
    folders = [str(tmp_path / 'images'), str(tmp_path / 'masks')]
    arguments = ['doubtful_masks', *folders, '--num-classes', '2', '--sets', '10']
    monkeypatch.setattr(sys, 'argv', arguments)
    doubtful_masks.main()
    _, number, falsely_named, found, _ = capsys.readouterr().out.split('|')
    assert (number.strip(), falsely_named.strip()) == ('10', '0.0 %')
    # of two exchanged masks, a half are of a mirrored image on average
    assert 20 < float(found.split()[0]) < 80
