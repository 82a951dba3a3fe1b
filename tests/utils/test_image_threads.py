import os
import signal
import threading
import time

import cv2
import numpy as np
import pytest
from mmseg.datasets import BaseSegDataset
from ranks import without_cuda

from mmseg_cct.preflight.files import look_at_evaluation_data
from mmseg_cct.utils.image_threads import image_threads
from mmseg_cct.utils.shares import ahead


def reads_in_a_fork(data, seconds=5.0):
    process = os.fork()
    if process == 0:
        cv2.imdecode(data, 1)
        os._exit(0)
    end = time.monotonic() + seconds
    while not os.waitpid(process, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return False
        time.sleep(0.0005)
    return True


@without_cuda
@pytest.mark.slow
def test_a_fork_right_after_images_were_read_reads_too(tmp_path):
    for index in range(4):
        cv2.imwrite(str(tmp_path / f'{index}.png'), np.zeros((16, 16, 3), np.uint8))
    paths = sorted(map(str, tmp_path.glob('*.png')))
    dataset = BaseSegDataset(
        data_prefix=dict(img_path=str(tmp_path)),
        img_suffix='.png',
        metainfo=dict(classes=('a', 'b')),
        pipeline=[dict(type='LoadImageFromFile')],
    )
    data = np.fromfile(paths[0], np.uint8)
    for _ in range(100):
        look_at_evaluation_data(dataset, 'test_dataloader.dataset')
        assert reads_in_a_fork(data)


def test_a_thread_that_has_read_images_does_not_end():
    # The one above shows what happens else, in about one of a hundred forks.
    threads = set(ahead(lambda _: threading.current_thread(), range(20)))
    assert all(thread.is_alive() for thread in threads)


@without_cuda
def test_a_fork_has_threads_of_its_own():
    assert image_threads().submit(os.getpid).result() == os.getpid()
    process = os.fork()
    if process == 0:
        os._exit(image_threads().submit(os.getpid).result() != os.getpid())
    assert os.waitpid(process, 0)[1] == 0


def test_no_call_runs_after_the_results_have_ended():
    running = []

    def work(item):
        running.append(item)
        time.sleep(0.01)
        running.remove(item)
        return item

    results = ahead(work, range(100))
    assert next(results) == 0
    results.close()
    assert not running
