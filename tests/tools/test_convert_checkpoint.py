import torch

from mmseg_cct.interop.public_names import SHARED_NAMES


def test_converts_or_lists_what_does_not_match(cct, tmp_path, capsys):
    state = {
        f'module.{name}': torch.zeros(84, 21, 1, 1) if 'conv.weight' in name else torch.zeros(21)
        for name in SHARED_NAMES
    }
    state['module.main_decoder.upsample.0.weight'] = torch.zeros(21, 1, 1, 1)
    torch.save(dict(state_dict=state), tmp_path / 'in.pth')
    out = tmp_path / 'out.pth'
    assert cct.run('convert_checkpoint', tmp_path / 'in.pth', out) == 0
    assert capsys.readouterr().out == (
        f'{out}: 367 weights, 21 classes, main path alone; made for configs/public\n'
    )

    out.unlink()
    del state['module.main_decoder.upsample.1.conv.bias']
    state['module.fc.bias'] = torch.zeros(1)
    torch.save(dict(state_dict=state), tmp_path / 'in.pth')
    assert cct.run('convert_checkpoint', tmp_path / 'in.pth', out) == 1
    assert capsys.readouterr().err.splitlines() == [
        'missing: main_decoder.upsample.1.conv.bias', 'unexpected: fc.bias',
        f'error: {tmp_path / "in.pth"}: 1 names are missing and 1 unexpected; nothing is written '
        '(--partial writes what fits)',
    ]  # fmt: skip
    assert not out.exists()
    assert cct.run('convert_checkpoint', tmp_path / 'in.pth', out, '--partial', '--overwrite') == 1
    assert out.exists()
