import os
import shutil

import cv2
import mmcv
import numpy as np
import pytest
from mmcv import VideoReader
from PIL import Image

# FFmpeg reads it once, here when the clip is written, else when predict opens a video.
os.environ.setdefault('OPENCV_FFMPEG_LOGLEVEL', '-8')

FRAMES, SIZE = 7, (64, 48)


@pytest.fixture
def clip(tmp_path):
    """A video of a square that moves."""
    path = tmp_path / 'clip.mp4'
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*'mp4v'), 12.5, SIZE)
    if not writer.isOpened():
        pytest.skip('this OpenCV has no encoder mp4v')
    for index in range(FRAMES):
        frame = np.full((SIZE[1], SIZE[0], 3), 60, np.uint8)
        frame[10:30, 5 * index : 5 * index + 20] = (0, 0, 220)
        writer.write(frame)
    writer.release()
    return path


def read(path):
    video = VideoReader(str(path))
    return list(video), video.fps


def predict(trained, video, out, *options):
    arguments = trained.file, trained.checkpoint, video, '--out', out, '--device', 'cpu'
    return trained.run('predict', *arguments, *options)


def test_an_overlay_of_the_same_length_and_rate_and_masks_of_each_frame(
    trained, clip, tmp_path, capsys
):
    out = tmp_path / 'out'
    assert predict(trained, clip, out, '--format', 'masks', '--opacity', '1') == 0
    assert f'{FRAMES} written' in capsys.readouterr().out
    frames, rate = read(out / 'overlays/clip.mp4')
    assert len(frames) == FRAMES and rate == pytest.approx(12.5)
    height, width = frames[0].shape[:2]
    assert width == SIZE[0] and height > SIZE[1] and height % 2 == 0  # a legend below
    masks = sorted((out / 'masks/clip').iterdir())
    assert [path.name for path in masks] == [f'{index:06d}.png' for index in range(FRAMES)]
    mask = np.array(Image.open(masks[3]))
    assert mask.shape == SIZE[::-1] and mask.max() < 3
    shown = np.array(trained.palette)[mask]
    assert np.abs(frames[3][: SIZE[1], :, ::-1].astype(int) - shown).mean() < 25  # it is packed
    assert [path.name for path in (out / 'overlays').iterdir()] == ['clip.mp4']

    assert predict(trained, clip, out, '--format', 'masks', '--opacity', '1') == 0
    assert f'0 written to {out}, {FRAMES} there already' in capsys.readouterr().out


def test_a_video_is_never_in_memory_as_a_whole(trained, clip, tmp_path, monkeypatch):
    from mmseg_cct.apis import video

    alive, most = 0, 0

    class Counted(mmcv.VideoReader):
        def __next__(self):
            nonlocal alive, most
            frame = super().__next__()
            alive += 1
            most = max(most, alive)
            return frame

    blend = video.blend

    def done(*arguments):
        nonlocal alive
        alive -= 1
        return blend(*arguments)

    monkeypatch.setattr(mmcv, 'VideoReader', Counted)
    monkeypatch.setattr(video, 'blend', done)
    monkeypatch.setattr('mmseg_cct.utils.shares._WAITING', 1)
    assert predict(trained, clip, tmp_path / 'out') == 0
    assert most < FRAMES and alive == 0


@pytest.mark.parametrize(
    ('name', 'content', 'options', 'message'),
    [
        ('x.mp4', b'no video', (), 'cannot be read; expected a video that OpenCV decodes'),
        ('x.MOV', b'', (), 'cannot be read; expected a video that OpenCV decodes'),
        ('x.avi', None, (), 'no such file; expected a video'),
        (os.fsdecode(b'\xe9.avi'), b'', (), 'not UTF-8; expected another name for OpenCV'),
        ('x.mp4', b'', ('--format', 'coco'), 'is a video; expected images'),
    ],
)
def test_mistakes_are_one_line(trained, tmp_path, capfd, name, content, options, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    arguments = trained.file, trained.checkpoint, tmp_path / name, '--out', tmp_path / 'out'
    assert trained.tool('predict', *arguments, *options) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.endswith(message) and f'{tmp_path}/' in line
    assert not (tmp_path / 'out').exists()


def test_a_name_is_no_address(trained, clip, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(clip, 'file:missing.mp4')
    assert predict(trained, 'file:missing.mp4', tmp_path / 'out') == 0


def test_a_video_that_ends_too_early_is_told_and_what_there_is_is_kept(
    trained, clip, tmp_path, monkeypatch, capsys
):
    class Short(mmcv.VideoReader):
        def __next__(self):
            if self.position == 2:
                raise StopIteration
            return super().__next__()

    monkeypatch.setattr(mmcv, 'VideoReader', Short)
    assert predict(trained, clip, tmp_path / 'out') == 1
    assert f'error: {clip}: ends after 2 of {FRAMES} frames' in capsys.readouterr().err
    assert len(read(tmp_path / 'out/overlays/clip.mp4')[0]) == 2
