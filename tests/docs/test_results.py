"""The tables of the pages are what the kept runs give."""

from statistics import mean

import results_page as page
from mmengine.config import Config

from mmseg_cct.studies.learning_curve import equivalent_labels


def test_the_pages_are_what_the_script_writes():
    runs = page.read_runs()
    for file, kind, kept in (
        ('results.csv', page.Measured, runs),
        ('curves.csv', page.Validated, page.read_curves()),
    ):
        assert page.csv_text(kind._fields, kept) == (page.DOCS / file).read_text()
    assert len({run[:6] for run in runs}) == len(runs)
    for file in page.PAGES:
        text = file.read_text(encoding='utf-8')
        assert page.TABLE.search(text)
        assert page.write_tables(text, runs) == text, f'{file.name}: run benchmarks/results_page.py'


def test_the_labels_that_a_gain_is_worth():
    runs = page.main_runs(page.read_runs(), 'idd_lite')

    def miou(method, labels):
        return mean(run.miou for run in runs if (run.method, run.labels) == (method, labels))

    numbers = [5, 10, 20, 50, 100]
    curve = [miou('supervised', n) for n in numbers]
    worth = [equivalent_labels(numbers, curve, miou('cct-strong', n)) for n in numbers[:-1]]
    said = 'equals supervised training with {:.0f}, {:.0f}, {:.0f} and {:.0f}: 1.5 to 2.1 times'
    text = ' '.join((page.DOCS / 'results.md').read_text(encoding='utf-8').split())
    assert said.format(*worth) in text


def test_a_grid_has_the_same_labels_for_each_seed():
    gains = {(n, seed): 0.0 for n in (5, 20, 50) for seed in range(3)}
    gains |= {(n, seed): 0.0 for n in (5, 20) for seed in (3, 4)}
    assert page.balanced(gains) == ([5, 20], [0, 1, 2, 3, 4])


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
    table = page.paired_table(page.main_runs(more, 'idd_lite'), 20, 'n = 20')
    assert table.splitlines()[0].endswith('| mean | seed 0 | 1 | 2 | 3 | 4 | 7 |')


def test_validations_are_paired_by_seed_and_iteration(tmp_path):
    for method, readings in (('supervised', (40, 41, 41.5)), ('cct-strong', (39.96, 43))):
        folder = tmp_path / method / '20' / 'seed7'
        log = folder / 'train' / '20260101_000000' / 'vis_data' / 'scalars.json'
        log.parent.mkdir(parents=True)
        lines = (f'{{"step": {100 * n}, "mIoU": {miou}}}' for n, miou in enumerate(readings, 1))
        log.write_text('\n'.join(['{"step": 50, "loss": 1.0}', *lines, '']))
        Config(dict(train_cfg=dict(max_iters=300))).dump(folder / 'config.py')
    curves = page.add_curves([], tmp_path, 'idd_lite')
    assert len(curves) == 5 and page.add_curves(curves, tmp_path, 'idd_lite') == curves
    header, _, *rows = page.curve_table(curves, 'cct-strong', 'iteration').splitlines()
    assert header == '| iteration | 100 | 200 | 300 |'
    assert rows == ['| seed 7 | +0.0 | +2.0 |  |']
    # a study without numbers of labels has the config's
    (tmp_path / 'supervised' / '20').rename(tmp_path / 'supervised' / 'config')
    settings = dict(
        train_cfg=dict(max_iters=300), train_dataloader=dict(dataset=dict(num_labeled=20))
    )
    Config(settings).dump(tmp_path / 'supervised' / 'config' / 'seed7' / 'config.py')
    assert page.add_curves([], tmp_path, 'idd_lite') == curves
    # and the mean gain where all seeds have one
    curves = [
        page.Validated('idd_lite', 20, 300, method, seed, step, miou)
        for method, seed, step, miou in (
            ('supervised', 7, 100, 40.0),
            ('cct', 7, 100, 41.0),
            ('supervised', 8, 100, 39.0),
            ('cct', 8, 100, 42.0),
            ('supervised', 7, 200, 41.0),
            ('cct', 7, 200, 42.0),
        )
    ]
    assert page.curve_table(curves, 'cct', 'n').splitlines()[-1] == '| mean | **+2.0** |  |'


def test_the_long_runs_are_plotted_where_methods_are_compared():
    def run(labels, method, miou, length=12000):
        return page.Validated('idd_lite', labels, length, method, 0, 6000, miou)

    runs = [run(20, 'supervised', 50.0), run(20, 'cct-strong', 55.0), run(5, 'cct-strong', 45.0)]
    alone, short = run(50, 'supervised', 54.0), run(100, 'cct-strong', 57.0, length=2400)
    figure = page.plot_long([*runs, alone, short])
    assert [axes.get_title() for axes in figure.axes] == ['5 labelled images', '20 labelled images']
    many = figure.axes[1]
    assert [line.get_ydata()[0] for line in many.lines if len(line.get_ydata())] == [50, 55]
    (entries,) = (legend.get_texts() for legend in figure.legends)
    assert [text.get_text() for text in entries] == ['supervised', 'cct-strong']
