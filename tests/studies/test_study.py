import json
import re
import shutil
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import HOOKS

from mmseg_cct.cli.arguments import METHODS_HELP
from mmseg_cct.config.compose import read_method
from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import changed_settings
from mmseg_cct.engine.labels_record import Labels, write_labels
from mmseg_cct.errors import UserError
from mmseg_cct.studies.ablation import write_ablation
from mmseg_cct.studies.study import lists_of, prepare_study

OPTIONS = {'train_cfg.max_iters': 7, 'model.backbone.init_cfg': None}
KEPT = {f'default_hooks.checkpoint.{key}' for key in ('max_keep_ckpts', 'save_best')}
DOMAINS = 'configs/multi_domain/cct_mbv2-jpu_camvid-idd_20.py'


@pytest.fixture
def base(project_root, monkeypatch):
    monkeypatch.chdir(project_root)
    return 'configs/cct/cct_mbv2_camvid_50.py'


def prepare(out, base, numbers=(), seeds=(0,), methods=('cct',), lists=None, **options):
    """The runs of methods, which are overlays, or names of them."""
    if not isinstance(methods, dict):
        methods = {name: read_method(name) for name in methods}
    options = {**OPTIONS, **options}
    labels = lists_of(base, options, list(numbers), lists, list(seeds))
    return prepare_study(out, base, methods, labels, seeds, options)


def test_a_study_has_a_run_of_each_combination(tmp_path, base):
    runs = prepare(tmp_path, base, [20, 100], (0, 1), ('supervised', 'kl'))
    assert [(run.method, run.labels, run.seed) for run in runs] == [
        (method, n, seed)
        for seed in (0, 1)
        for n in ('20', '100')
        for method in ('supervised', 'kl')
    ]
    config = Config.fromfile(runs[-1].config)
    assert config.randomness.seed == 1
    assert config.model.auxiliary_head.loss_consistency.type == 'KLConsistency'
    dataset = config.train_dataloader.dataset
    assert (dataset.num_labeled, Path(dataset.split_dir).name) == (100, 'camvid')
    assert (config.train_cfg.max_iters, config.param_scheduler.end) == (7, 7)
    assert runs[-1].checkpoint.name == 'iter_7.pth'


def test_runs_are_what_train_composes(tmp_path, base):
    methods = {name: name for name in METHODS_HELP.split(', ')[:-1]}
    runs = prepare(tmp_path, base, [20], [3], methods)
    assert len(runs) > 5
    for method, run in zip(methods, runs, strict=True):
        options = {'method': method, 'labels': 20, **OPTIONS, 'randomness.seed': 3}
        composed = load_config(base, options)
        changes = changed_settings(composed, Config.fromfile(run.config))
        assert {key for key, *_ in changes} <= KEPT, method


def test_without_numbers_the_lists_are_the_configs_and_a_seed_counts_once(tmp_path, base):
    runs = prepare(tmp_path, base, seeds=[3, 0, 3])
    assert [run.folder for run in runs] == [tmp_path / f'cct/config/seed{seed}' for seed in (3, 0)]
    assert Config.fromfile(runs[0].config).train_dataloader.dataset.num_labeled == 50


def test_another_study_in_the_folder_is_an_error_and_nothing_is_written(tmp_path, base):
    prepare(tmp_path, base, [20], [1])
    prepare(tmp_path, base, [20, 50], [1])  # more runs are none
    for changed in (dict(methods={'cct': read_method('js')}), {'train_cfg.max_iters': 9}):
        with pytest.raises(UserError, match=r'seed1/config\.py: .* there, .* here'):
            prepare(tmp_path, base, [20], [0, 1], **changed)
    assert not (tmp_path / 'cct/20/seed0').exists()


def test_an_option_wins_over_the_method_and_is_left_out_where_that_removes_its_part(tmp_path, base):
    methods = {name: name for name in ('cct-strong', 'supervised')}  # the latter has no teacher
    options = {'default_hooks.teacher.decay': 0.5}
    strong, supervised = prepare(tmp_path, base, methods=methods, **options)
    assert Config.fromfile(strong.config).default_hooks.teacher.decay == 0.5
    assert 'teacher' not in Config.fromfile(supervised.config).default_hooks


def test_the_last_checkpoint_is_written_where_it_is_looked_for(tmp_path, base):
    own = dict(save_last=False, interval=3, out_dir='elsewhere', filename_tmpl='step_{}.pth')
    options = {f'default_hooks.checkpoint.{key}': own[key] for key in own}
    (run,) = prepare(tmp_path, base, **options)
    hook = HOOKS.build(Config.fromfile(run.config).default_hooks.checkpoint)
    assert (hook.save_last, hook.out_dir, hook.filename_tmpl) == (True, None, 'iter_{}.pth')


@pytest.mark.parametrize(
    ('config', 'numbers', 'lists', 'message'),
    [
        (None, [], 'mine', '--lists mine needs -n, the numbers'),
        (None, [20], '/nowhere', '/nowhere/20_labeled.txt: no such list'),
        ('configs/demo/cct_shapes.py', [3000], None, 'cct_shapes.py has .* labelled images'),
        (DOMAINS, [50], 'a', r"one folder for all domains; expected '\{domain\}'"),
    ],
)
def test_lists_that_are_not_there_are_an_error(base, config, numbers, lists, message):
    with pytest.raises(UserError, match=message):
        lists_of(config or base, {}, numbers, lists)


def test_a_seed_has_its_own_lists(base, tmp_path):
    for seed in (0, 1):
        for branch in ('labeled', 'unlabeled'):
            file = tmp_path / f'seed{seed}' / f'20_{branch}.txt'
            file.parent.mkdir(exist_ok=True)
            file.write_text('0001TP_006690\n')
    lists = str(tmp_path / 'seed{seed}')
    for run in prepare(tmp_path / 'out', base, [20], [0, 1], lists=lists):
        dataset = Config.fromfile(run.config).train_dataloader.dataset
        assert (dataset.split_dir, dataset.num_labeled) == (str(tmp_path / run.folder.name), 20)
    with pytest.raises(UserError, match=f'{tmp_path}/seed2/20_labeled.txt: no such list'):
        prepare(tmp_path / 'out', base, [20], [0, 1, 2], lists=lists)


def test_runs_of_several_domains_have_their_lists_and_are_judged_by_the_average(tmp_path, base):
    with pytest.raises(UserError, match=r'lists/idd/3/50_labeled\.txt: no such list'):
        (tmp_path / 'lists/camvid/3').mkdir(parents=True)
        (tmp_path / 'lists/camvid/3/50_labeled.txt').touch()
        lists_of(DOMAINS, {}, [50], f'{tmp_path}/lists/{{domain}}/{{seed}}', [3])
    runs = prepare(tmp_path, DOMAINS, [50], methods=dict(supervised='supervised', cct={}))
    for run, scores in zip(runs, ((30.0, 50.0), (36.0, 52.0))):
        sets = Config.fromfile(run.config).train_dataloader.dataset.domains
        assert [Path(each.split_dir).name for each in sets.values()] == ['camvid', 'idd_lite']
        assert [each.num_labeled for each in sets.values()] == [50, 50]
        test = run.folder / 'test' / '20260101_000000'
        test.mkdir(parents=True)
        metrics = dict(zip(('camvid/mIoU', 'idd/mIoU', 'mIoU_avg'), (*scores, sum(scores) / 2)))
        (test / 'metrics.json').write_text(json.dumps(metrics))
    write_ablation(tmp_path)
    text = (tmp_path / 'ablation.md').read_text()
    assert 'the average of the domains, seed 0' in text
    average, camvid, idd = (part.split('Gain over')[0] for part in text.split(' alone:'))
    for part, values in ((average, (40.0, 44.0)), (camvid, (30.0, 36.0)), (idd, (50.0, 52.0))):
        assert [f'| {each} |' in part for each in values] == [True, True]
    assert '| cct | 50 | +4.0 |' in text


@pytest.mark.parametrize(
    ('key', 'options'),
    [
        ('train_dataloader.dataset.labeled', {'train_dataloader.dataset.labeled': None}),
        ('train_cfg.max_iters', {'train_cfg.max_iters': None}),
        ('test_dataloader', {'test_dataloader': None}),
        ('default_hooks.checkpoint', {'default_hooks.checkpoint': None}),
        ('gives no mIoU', {'test_evaluator.iou_metrics': ['mDice']}),
        ('a study collects', {'test_evaluator.prefix': 'test'}),
    ],
)
def test_a_mistake_is_told_before_anything_is_written(base, tmp_path, key, options):
    with pytest.raises(UserError, match=re.escape(key)):
        lists_of(base, options, [20])
    with pytest.raises(UserError, match=re.escape(key)):
        prepare_study(tmp_path / 'out', base, {'cct': {}}, {'config': print}, [0], options)
    assert not (tmp_path / 'out').exists()


def test_without_lists_each_seed_draws_its_nested_labels(tmp_path, project_root, monkeypatch):
    monkeypatch.chdir(project_root)
    runs = prepare(tmp_path, 'configs/demo/cct_shapes.py', [2, 4], (0, 1))
    sets = [Config.fromfile(run.config).train_dataloader.dataset.labeled for run in runs]
    drawn = {(run.labels, run.seed): set(each.indices) for run, each in zip(runs, sets)}
    assert all(len(indices) == int(labels) for (labels, _), indices in drawn.items())
    assert drawn['2', 0] < drawn['4', 0] != drawn['4', 1]


def test_a_study_whose_labelled_images_changed_is_refused(cct):
    def prepare_seed(seed):
        labels = {'config': lambda config, seed: None}
        return prepare_study(cct.folder / 'out', str(cct.file), {'cct': {}}, labels, [seed], {})

    (run,) = prepare_seed(0)
    (run.folder / 'train').mkdir()
    labeled = sorted(str(cct.images / f'{path.stem}.png') for path in cct.data.glob('masks/*'))
    write_labels(run.folder / 'train', Labels(labeled, 3))
    assert prepare_seed(1)
    shutil.copyfile(cct.data / 'masks/l0.png', cct.data / 'masks/u0.png')
    with pytest.raises(UserError) as error:
        prepare_seed(2)
    assert error.value.problems[0].key == run.folder
