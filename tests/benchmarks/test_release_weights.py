import hashlib
import subprocess
import sys

import release_weights
import yaml


def test_the_files_of_a_release_and_their_entry(trained, tmp_path, monkeypatch, capsys):
    # git may be missing; mmengine asks for the compiler's version, as bytes
    answer = lambda *_, text=False, **__: 'abc\n' if text else b'abc\n'  # noqa: E731
    monkeypatch.setattr(subprocess, 'check_output', answer)
    arguments = f'{trained.work_dir} --config configs/a.py --data-set Mine --url x://y --out'
    monkeypatch.setattr(sys, 'argv', ['release', *arguments.split(), str(tmp_path)])
    release_weights.main()
    printed = capsys.readouterr().out
    (entry,) = yaml.safe_load(printed[printed.index('- Name') :])
    weights, log = (entry[key].removeprefix('x://y/') for key in ('Weights', 'Training Log'))
    assert weights.startswith(entry['Name']) and entry['Code'] == {'Version': 'abc'}
    assert 0 < entry['Results'][0]['Metrics']['mIoU'] <= 100
    sums = [line.split() for line in (tmp_path / 'SHA256SUMS').read_text().splitlines()]
    assert {name for _, name in sums} == {weights, log}
    for value, name in sums:
        assert value == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    assert str(trained.folder) not in (tmp_path / log).read_text()
