import pytest
import results_page as page
from mmengine.config import Config

from mmseg_cct.studies.results import interval, p_value


def test_the_pages_are_what_the_script_writes():
    runs = page.read_runs()
    assert page.csv_text(runs) == page.CSV.read_text()
    assert len({run[:6] for run in runs}) == len(runs)
    for file in page.PAGES:
        text = file.read_text(encoding='utf-8')
        assert page.TABLE.search(text)
        assert page.write_tables(text, runs) == text, f'{file.name}: run benchmarks/results_page.py'


def test_three_pairs_that_agree_by_luck_are_not_believed_nor_drifting_ones_pooled():
    steady = [[1.0, 2.5, 4.0, 2.0], [0.5, -1.0, 1.5], [3.0, 3.1, 2.9]]
    drifting = [8.0, -9.0, 0.0]
    errors = [gain - sum(gains) / len(gains) for gains in steady for gain in gains]
    spread = page.pooled([drifting, *steady])
    assert spread.freedom == len(errors) - len(steady)
    assert spread.deviation == pytest.approx((sum(e**2 for e in errors) / spread.freedom) ** 0.5)
    lucky = page.measured(steady[2], spread)
    assert lucky.half > 4 * interval(steady[2]) and lucky.p > 4 * p_value(steady[2])
    own = page.measured(drifting, spread)
    assert (own.half, own.p) == pytest.approx((interval(drifting), p_value(drifting)))


def test_a_study_is_added_once(tmp_path):
    for method, miou in (('supervised', 50.04), ('ema-target', 52.25)):
        folder = tmp_path / method / '20' / 'seed7'
        (folder / 'test' / '20260101_000000').mkdir(parents=True)
        metrics = f'{{"mIoU": {miou}, "IoU.sky": 71.23, "IoU.car": 31}}'
        (folder / 'test' / '20260101_000000' / 'x.json').write_text(metrics)
        Config(dict(train_cfg=dict(max_iters=1200))).dump(folder / 'config.py')
    runs = page.read_runs()
    more = page.add_study(runs, tmp_path, 'idd_lite', 'val', '2026-11-23')
    assert set(more) > set(runs) and len(more) == len(runs) + 2
    (added,) = (run for run in more if run.seed == 7 and run.method == 'cct')
    assert (added.miou, added.iterations, added.iou_by_class) == (52.2, 1200, 'sky=71.2;car=31.0')
    assert page.add_study(more, tmp_path, 'idd_lite', 'val', '2026-11-23') == more
