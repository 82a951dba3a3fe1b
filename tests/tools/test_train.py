import json

import pytest
import torch
from mmengine.config import Config

from mmseg_cct.apis.device import fit_to_device
from mmseg_cct.apis.train import prepare_training, train
from mmseg_cct.config.load import load_config
from mmseg_cct.engine.optimizers.cpu_amp_optim_wrapper import CPUAmpOptimWrapper
from mmseg_cct.errors import UserError


def _scalars(work_dir):
    """The logged training lines of the only run in a work directory."""
    (path,) = work_dir.glob('*/vis_data/scalars.json')
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if 'loss' in line]


@pytest.fixture
def messages(monkeypatch):
    """What loading a config logs; mmengine's loggers do not reach caplog."""
    lines = []
    monkeypatch.setattr('mmseg_cct.utils.log.print_log', lambda line, **kwargs: lines.append(line))
    return lines


def test_training_writes_checkpoint_config_and_metrics(trained):
    assert trained.checkpoint.is_file()
    assert (trained.work_dir / 'tiny.py').is_file()
    scalars = _scalars(trained.work_dir)
    assert [line['iter'] for line in scalars] == [1, 2]
    assert all(line['loss'] > 0 for line in scalars)


def test_work_dir_is_named_after_the_config(tiny):
    config = prepare_training(str(tiny.config))
    assert config.work_dir == 'work_dirs/tiny'
    assert not config.get('resume')


def test_resume_goes_on_from_the_latest_checkpoint(tiny):
    tiny.run('train', tiny.config, '--work-dir', 'work')
    options = {'train_cfg.max_iters': 4}
    config = prepare_training(str(tiny.config), work_dir='work', resume='auto', options=options)
    assert (config.load_from, config.resume) == (None, True)
    assert config.param_scheduler[0].end == 4
    train(config)
    assert (tiny.folder / 'work' / 'last_checkpoint').read_text().endswith('iter_4.pth')
    dumped = Config.fromfile(tiny.folder / 'work' / 'tiny.py')
    assert not dumped.resume  # another training with it starts anew


def test_autocast_covers_the_forward_pass_only():
    model = torch.nn.Linear(4, 4)
    wrapper = CPUAmpOptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1))
    with wrapper.optim_context(model):
        inside = model(torch.ones(1, 4))
    assert inside.dtype is torch.bfloat16
    assert model(torch.ones(1, 4)).dtype is torch.float32
    wrapper.update_params(inside.float().sum())
    assert model.weight.dtype is torch.float32


@pytest.mark.parametrize('has_bfloat16', [True, False])
def test_a_cpu_without_bfloat16_is_told_of_the_slow_step(monkeypatch, has_bfloat16):
    module = 'mmseg_cct.engine.optimizers.cpu_amp_optim_wrapper'
    lines = []
    monkeypatch.setattr(f'{module}._computes_bfloat16', lambda: has_bfloat16)
    monkeypatch.setattr('mmseg_cct.utils.log.print_log', lambda line, **kwargs: lines.append(line))
    CPUAmpOptimWrapper(torch.optim.SGD([torch.zeros(1)], lr=0.1))
    assert len(lines) == (not has_bfloat16)
    assert all('expected OptimWrapper (no --amp)' in line for line in lines)


@pytest.mark.parametrize(
    ('device', 'expected'), [('cpu', 'CPUAmpOptimWrapper'), ('cuda', 'AmpOptimWrapper')]
)
def test_amp_wrapper_is_chosen_by_device(tiny, monkeypatch, device, expected):
    monkeypatch.setattr('mmseg_cct.apis.device.get_device', lambda: device)
    wrapper = prepare_training(str(tiny.config), amp=True).optim_wrapper
    assert wrapper.type == expected
    assert ('loss_scale' in wrapper) == (device == 'cuda')


def test_distributed_on_the_cpu_drops_sync_bn_and_device_ids(tiny):
    config = load_config(str(tiny.config), {})
    norms = [dict(type='SyncBN', requires_grad=True), dict(type='GN', num_groups=4)]
    config.model.update(norm_cfg=norms[0], neck=dict(convs=[dict(norm_cfg=each) for each in norms]))
    config = fit_to_device(config, 'pytorch')
    assert 'sync_bn' not in config
    assert config.model.norm_cfg == dict(type='BN', requires_grad=True)
    assert [conv.norm_cfg.type for conv in config.model.neck.convs] == ['BN', 'GN']
    assert config.model_wrapper_cfg['device_ids'] is None
    with pytest.raises(UserError, match='--launcher mpi: needs GPUs'):
        fit_to_device(config, 'mpi')


def test_distributed_on_gpus_is_left_to_mmengine(tiny, monkeypatch):
    monkeypatch.setattr('mmseg_cct.apis.device.get_device', lambda: 'cuda')
    config = fit_to_device(load_config(str(tiny.config), {}), 'slurm')
    assert config.sync_bn == 'torch' and 'model_wrapper_cfg' not in config


@pytest.mark.parametrize(('device', 'pinned'), [('cuda', True), ('cpu', None)])
def test_memory_is_pinned_for_a_gpu_alone(tiny, monkeypatch, device, pinned):
    monkeypatch.setattr('mmseg_cct.apis.device.get_device', lambda: device)
    config = fit_to_device(load_config(str(tiny.config), {}), 'none')
    assert config.train_dataloader.get('pin_memory') is pinned
    config.train_dataloader.pin_memory = False
    assert fit_to_device(config, 'none').train_dataloader.pin_memory is False


def test_parameter_groups_are_merged_unless_the_config_has_its_own_way(tiny):
    config = fit_to_device(load_config(str(tiny.config), {}), 'none')
    assert config.optim_wrapper.constructor == 'MergedOptimWrapperConstructor'
    config.optim_wrapper.constructor = 'DefaultOptimWrapperConstructor'
    assert fit_to_device(config, 'none').optim_wrapper.constructor.startswith('Default')


@pytest.mark.parametrize(
    ('options', 'end'),
    [
        ({}, 2),
        ({'train_cfg.max_iters': 7}, 7),
        ({'train_cfg.max_iters': 7, 'param_scheduler.0.end': 5}, 5),
    ],
)
def test_the_schedule_ends_with_the_training(tiny, options, end):
    assert load_config(str(tiny.config), options).param_scheduler[0].end == end


def test_a_warm_up_keeps_its_end(tiny):
    tiny.config.write_text(
        tiny.config.read_text()
        + "param_scheduler.insert(0, dict(type='LinearLR', by_epoch=False, begin=0, end=1))\n"
        + "param_scheduler.append(dict(type='StepLR', by_epoch=True, step_size=1, end=2))\n"
    )
    schedulers = load_config(str(tiny.config), {'train_cfg.max_iters': 9}).param_scheduler
    assert [scheduler.end for scheduler in schedulers] == [1, 9, 2]


def test_a_replaced_dict_is_no_new_key(tiny, messages):
    options = {'optim_wrapper.optimizer._delete_': True, 'optim_wrapper.optimizer.type': 'Adam'}
    assert load_config(str(tiny.config), options).optim_wrapper.optimizer == dict(type='Adam')
    assert messages == []


def test_a_new_key_is_named(tiny, messages):
    load_config(
        str(tiny.config),
        {'train_cfg.max_iter': 3, 'train_cfg.val_interval': 2, 'param_scheduler.0.end': 1},
    )
    (message,) = messages
    assert message.startswith('--cfg-options train_cfg.max_iter: a new key')


@pytest.mark.parametrize(
    ('text', 'match'),
    [
        ('a = [1,', 'SyntaxError'),
        ("_base_ = 'missing.py'", r'missing\.py'),
        ('a = 1 / 0', 'ZeroDivisionError'),
        (
            "custom_imports = dict(imports=['no_such_package'], allow_failed_imports=False)",
            "No module named 'no_such_package'; expected .*PYTHONPATH=\\.",
        ),
        (
            'import no_such_package as a',
            "No module named 'no_such_package'; expected .*PYTHONPATH=\\.",
        ),
    ],
)
def test_a_config_that_does_not_load_is_one_line(tmp_path, text, match):
    path = tmp_path / 'bad.py'
    path.write_text(text)
    with pytest.raises(UserError, match=match) as error:
        load_config(str(path), {})
    assert str(error.value).startswith(f'{path}: this config does not load: ')
    assert '\n' not in str(error.value)


def test_an_option_that_does_not_fit_is_one_line(tiny):
    expected = r'where param_scheduler is a list of 1; expected param_scheduler\.0 \(PolyLR\)$'
    for part in ('9', 'power'):
        with pytest.raises(UserError, match=rf'^--cfg-options param_scheduler\.{part}.*{expected}'):
            load_config(str(tiny.config), {f'param_scheduler.{part}.power': 3})
    tiny.config.write_text(tiny.config.read_text() + "model['backbone']['init_cfg'] = None\n")
    expected = r'^--cfg-options \S+: .* where model\.backbone\.init_cfg is None; expected a dict'
    with pytest.raises(UserError, match=expected):
        load_config(str(tiny.config), {'model.backbone.init_cfg.checkpoint': 'a.pth'})


def test_a_missing_resume_checkpoint_is_named(tiny):
    with pytest.raises(UserError, match=r'^gone.pth: no such checkpoint file$'):
        prepare_training(str(tiny.config), resume='gone.pth')


def test_a_config_without_training_is_named(tiny):
    text = tiny.config.read_text().replace('train_cfg =', 'no_train_cfg =')
    tiny.config.write_text(text)
    with pytest.raises(UserError, match=r'tiny.py: no train_cfg; expected a config for training'):
        prepare_training(str(tiny.config))


def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(tiny, capsys):
    with pytest.raises(SystemExit) as end:
        tiny.run('train', 'none.py')
    assert end.value.code == 2
    assert capsys.readouterr().err == 'error: none.py: no such config file\n'


@pytest.fixture
def finished(tiny):
    """The work directory of a training of two iterations."""
    tiny.run('train', tiny.config, '--work-dir', 'work')
    return tiny.folder / 'work'


@pytest.mark.parametrize('options', [[], ['--cfg-options', 'model.decode_head.num_classes=7']])
def test_a_finished_training_is_not_overwritten(tiny, finished, options, capsys):
    files = [path for path in finished.rglob('*') if path.is_file() and path.suffix != '.log']
    before = {path: path.read_bytes() for path in files}
    with pytest.raises(SystemExit):
        tiny.run('train', tiny.config, '--work-dir', 'work', *options)
    assert capsys.readouterr().err.splitlines()[-1] == (
        'error: --work-dir work: holds a training up to iter_2.pth; expected --resume, or another '
        'folder, for a next round of labels --work-dir work-round2'
    )
    assert before == {path: path.read_bytes() for path in files}


@pytest.mark.parametrize('resume', [None, 'auto'])
def test_the_config_is_not_overwritten(tiny, resume):
    (tiny.folder / 'link').symlink_to(tiny.folder)
    for work_dir in ('.', str(tiny.folder), 'link'):
        with pytest.raises(UserError, match=r': holds .*tiny.py, which the run would'):
            prepare_training(str(tiny.config), work_dir=work_dir, resume=resume)


def test_a_training_resumes_from_its_own_dumped_config(tiny, finished):
    tiny.run(
        'train', 'work/tiny.py', '--work-dir', 'work', '--resume',
        '--cfg-options', 'train_cfg.max_iters=3',
    )  # fmt: skip
    assert (finished / 'iter_3.pth').is_file()


@pytest.mark.parametrize(
    'arguments', [('train', 'c.py', '--resume'), ('test', 'c.py', 'c.pth', '--tta')]
)
def test_a_forgotten_number_of_processes_is_one_line(tiny, arguments):
    name, *rest = arguments
    done = tiny.shell('bash', tiny.tools / f'dist_{name}.sh', *rest)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f'error: PROCESSES={rest[-1]}; expected a whole number, as in: ')


def test_the_learning_rate_is_scaled_on_demand(tiny):
    with pytest.raises(UserError, match=r'no auto_scale_lr\.base_batch_size; expected the batch'):
        prepare_training(str(tiny.config), auto_scale_lr=True)
    options = {'auto_scale_lr.base_batch_size': 10}
    config = prepare_training(str(tiny.config), auto_scale_lr=True, options=options)
    assert config.auto_scale_lr == dict(base_batch_size=10, enable=True)
