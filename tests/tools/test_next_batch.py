from world import write_photos


def test_the_command_line(cct, trained, tmp_path, capsys):
    run, out = trained.folder / 'work', tmp_path / 'out'
    sizes = {f'{index}.png': (40, 56) for index in range(3)}
    photos = write_photos(tmp_path / 'photos', sizes)
    arguments = run, '--images', photos, '-n', 2, '--format', 'cvat', '--out', out
    assert cct.run('next_batch', *arguments) == 0
    first, *_, training, report = capsys.readouterr().out.splitlines()
    assert '2 of 3 images' in first
    assert training.endswith(f' {run}/tiny.py --work-dir {run}-round2')
    assert report.endswith(f' report before={run} after={run}-round2 --out REPORT')
    assert cct.run('next_batch', *arguments[:-1], tmp_path / 'windows', '--regions', 2) == 0
    assert f'CORRECTED --images {photos} --rest ignore --out DATA' in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {
        *('images', 'masks', 'scores', 'ranking.csv', 'ranking.json'),
        *('review.html', 'cvat.xml', 'annotations.jsonl'),
    }
