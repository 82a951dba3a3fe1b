from pathlib import Path

from mmseg_cct.config.next_commands import commands_after_training, next_commands


def test_in_a_checkout_the_tools_are_its_own(project_root, monkeypatch):
    monkeypatch.chdir(project_root)
    assert next_commands(Path('/x/supervised_r18_mine.py'), 'supervised') == (
        'python tools/train.py /x/supervised_r18_mine.py',
        'python tools/report.py supervised=work_dirs/supervised_r18_mine --out work_dirs/report',
    )


def test_paths_with_spaces_are_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    predict, report = commands_after_training(
        tmp_path / 'my run/a.py', tmp_path / 'my run/iter_2.pth', 'cct'
    )
    assert predict.endswith(
        " predict 'my run/a.py' 'my run/iter_2.pth' IMAGES --out 'my run/predictions'"
    )
    assert report.endswith(" report 'cct=my run' --out 'my run/report'")


def test_a_model_of_domains_predicts_in_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (predict,) = commands_after_training(Path('w/a.py'), Path('w/iter_2.pth'), 'cct', 'camvid')
    assert predict.endswith(
        ' predict w/a.py w/iter_2.pth IMAGES --domain camvid --out w/predictions'
    )
