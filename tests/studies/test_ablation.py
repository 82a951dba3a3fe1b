import shutil

import pytest

from mmseg_cct.config.compose import find_bank, with_method
from mmseg_cct.config.load import load_config
from mmseg_cct.config.walk import changed_settings
from mmseg_cct.errors import UserError
from mmseg_cct.models.heads import PerturbedDecoderBank
from mmseg_cct.studies.ablation import (
    grid_methods,
    ordered_methods,
    plot_perturbations,
    run_study,
    write_ablation,
)
from mmseg_cct.studies.results import Result, collect, results_table

BASE = 'cct/cct_r50_camvid_50'
DEMO = 'demo/cct_shapes'  # the student itself is the teacher, in eval mode
BANK = 'model.auxiliary_head.'


@pytest.fixture
def base():
    return load_config(BASE, {})


def changes(config, overlay):
    """What an overlay adds or changes; it removes nothing."""
    before = config.to_dict()
    config = with_method(config, overlay)
    found = {key: new for key, _, new in changed_settings(before, config)}
    assert 'none' not in found.values()
    return found


@pytest.mark.parametrize(
    ('name', 'decay'), [('own-target', None), ('eval-target', 1e-6), ('ema-target', 0.99)]
)
def test_a_method_takes_its_target_elsewhere(name, decay):
    teacher = load_config(DEMO, {'method': name}).default_hooks.get('teacher')
    assert (teacher and teacher.decay) == decay


def test_the_grid_is_the_papers_or_has_the_settings_own_perturbations(base):
    methods = grid_methods(base, [2, 4, 6, 8])
    assert len(methods) == 2 + 4 * (7 + 2)
    assert {'supervised', 'supervised-abce', 'vat_k2', 'full_k8', 'full_abce_k6'} < methods.keys()
    assert changes(base, grid_methods(base, [5])['vat_k5']) == {
        f'{BANK}perturbations.{each}.num_decoders': 5 * (each == 'vat')
        for each in PerturbedDecoderBank.default_perturbations
    }
    find_bank(base).perturbations = dict(mine=dict(type='SpatialDropout'))
    assert {'mine_k1', 'full_k1', 'full_abce_k1'} < grid_methods(base, [1]).keys()
    with pytest.raises(UserError, match='auxiliary_head has no PerturbedDecoderBank'):
        grid_methods(load_config(BASE, {'method': 'supervised'}), [2])


@pytest.mark.parametrize(
    ('group', 'file'), [('full', BASE), ('full_abce', 'cct/cct_deeplabv3plus-r50_camvid_50')]
)
def test_full_has_k_decoders_of_each(group, file):
    """In DeepLabV3+ the bank is the second of a list, and leaves out the paper's perturbations."""
    config = load_config(file, {})
    heads = config.model.auxiliary_head
    config = with_method(config, grid_methods(config, [4])[f'{group}_k4'])
    numbers = {key: p.num_decoders for key, p in find_bank(config).perturbations.items()}
    assert numbers == dict.fromkeys(PerturbedDecoderBank.default_perturbations, 4)
    assert isinstance(config.model.auxiliary_head, list) == isinstance(heads, list)
    losses = config.model.decode_head.loss_decode
    if group == 'full_abce':
        assert [loss.type for loss in losses] == ['BootstrappedCrossEntropy']
    assert ('bootstrap' in config.default_hooks) == (group == 'full_abce')


def test_the_table_of_made_up_folders(out):
    results = collect(out)
    assert len(results) == 9
    # sample standard deviations: (30, 31, 35) → √7, (40, 42) → √2
    table = results_table(results, ordered_methods(results))
    assert table.header == ['method', 'n=20', 'n=100']
    assert table.rows == [
        ['supervised', '32.0 ± 2.6', ''],
        ['vat_k2', '38.0 (1 seed)', '48.1 (1 seed)'],
        ['vat_k10', '39.0 (1 seed)', ''],
        ['full_k2', '41.0 ± 1.4 (2 seeds)', ''],
        ['kl', '', '50.0 (1 seed)'],
    ]
    # as many seeds in each cell, but not the same ones
    results = [Result(*run, 40.0) for run in zip('aabb', ['20'] * 4, (0, 1, 1, 2))]
    same = '40.0 ± 0.0 (2 seeds)'
    assert results_table(results, ['a', 'b']).rows == [['a', same], ['b', same]]


def test_the_bars_by_perturbation_and_k(out):
    def heights(axes):
        bars = [each for each in axes.containers if hasattr(each, 'patches')]
        return [[bar.get_height() for bar in each] for each in bars]

    first, second = plot_perturbations(collect(out)).axes
    assert [label.get_text() for label in first.get_xticklabels()] == ['vat', 'full']
    assert heights(first) == [[38.0, 41.0], [39.0]]  # K=2: both; K=10: vat alone
    assert heights(second) == [[pytest.approx(48.06)], []]
    assert [32.0, 32.0] in [list(line.get_ydata()) for line in first.lines]  # the baseline


def test_all_is_written(out):
    write_ablation(out)
    text = (out / 'ablation.md').read_text()
    header, first, *_ = (out / 'results.csv').read_text().splitlines()
    assert (header, first) == ('method,labels,seed,miou', 'full_k2,20,0,40.0')
    assert 'mean ± standard deviation over the seeds 0, 1, 2' in text
    assert '(perturbations.png)' in text and (out / 'perturbations.png').stat().st_size > 0


def test_full_with_abce_has_its_own_baseline(out, put_result):
    put_result(out, 'supervised-abce', 20, 0, 33.0)
    put_result(out, 'full_abce_k2', 20, 0, 37.0)
    names = [line.partition(' over ')[0] for line in write_ablation(out)]
    assert 'full_abce_k2, 20 labelled images: +7.0 mIoU' in names
    assert 'full_abce_k2, 20 labelled images: +4.0 mIoU' in names
    assert sum(name.startswith('full_k2') for name in names) == 1


def test_the_verdict_is_printed_and_a_failure_is_the_exit_code(out, put_result, capsys):
    for seed, miou in enumerate((35.0, 36.1, 39.9)):
        put_result(out, 'cct-strong', 20, seed, miou)
    for name in ('full_k2', 'vat_k10', 'vat_k2'):
        shutil.rmtree(out / name)
    (out / 'kl/20/seed0/config.py').touch()
    assert run_study(out, lambda: ['kl: FAILED']) == 1
    printed = capsys.readouterr()
    said = 'cct-strong, 20 labelled images: +5.0 ±0.2 mIoU over the supervised baseline: ahead, 3'
    assert printed.out.startswith(said)
    assert printed.out.endswith(f'wrote {out / "ablation.md"}\n')
    assert printed.err == '1 unfinished run:\nkl: FAILED\n'


def test_ctrl_c_writes_what_is_there(out, capsys):
    def stop():
        raise KeyboardInterrupt

    (out / 'kl/20/seed0/config.tmp.py').touch()  # of a run that was stopped while it was prepared
    assert run_study(out, stop) == 130
    assert 'the same command goes on from here' in capsys.readouterr().err
    assert (out / 'ablation.md').is_file()


def test_the_files_of_others_are_kept_and_there_must_be_something_to_collect(tmp_path):
    (tmp_path / 'results.csv').write_text('mine')
    with pytest.raises(UserError, match='which this tool did not write'):
        run_study(tmp_path, lambda: pytest.fail('prepared'))
    assert (tmp_path / 'results.csv').read_text() == 'mine'
    with pytest.raises(UserError, match='no such folder'):
        run_study(tmp_path / 'typo', None)
