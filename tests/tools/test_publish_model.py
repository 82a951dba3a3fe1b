import subprocess
import sys

import cv2
import numpy as np
import pytest
import world


def test_an_exported_network_predicts_in_the_example_what_predict_does(
    trained, tmp_path, capsys, project_root
):
    pytest.importorskip('onnxruntime', reason='onnxruntime runs the file')
    sizes = dict.fromkeys(('a.png', 'b.png'), (40, 48)) | {'c.png': (75, 31)}
    photos = world.write_photos(tmp_path / 'photos', sizes)
    trained.run('publish_model', trained.work_dir, tmp_path / 'cct.pth', '--onnx')
    published, onnx = (next(tmp_path.glob(f'cct-*.{kind}')) for kind in ('pth', 'onnx'))
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith(f'{published}: 0.')
    assert said[-1].startswith(f'{onnx}: logits equal to those of PyTorch (to ')
    example = str(project_root / 'examples/6_onnx.py')
    subprocess.run([sys.executable, example, onnx, photos, tmp_path / 'seen'], check=True)
    trained.run('predict', trained.work_dir, photos, '--out', tmp_path / 'out')
    for name in sizes:
        colours, ids = (cv2.imread(str(tmp_path / place / name)) for place in ('seen', 'out/masks'))
        assert np.array_equal(colours, ids)  # the palette's colours
