import torch
from public_state import public_state


def test_converts_or_lists_what_does_not_match(cct, capsys):
    state = public_state(num_decoders=0)
    torch.save(dict(state_dict=state), 'in.pth')
    assert cct.run('convert_checkpoint', 'in.pth', 'out.pth') == 0
    assert capsys.readouterr().out.startswith(f'out.pth: {len(state)} weights, 3 classes, main')

    state['module.fc.bias'] = state.pop('module.main_decoder.upsample.1.conv.bias')
    torch.save(dict(state_dict=state), 'in.pth')
    assert cct.run('convert_checkpoint', 'in.pth', 'new.pth') == 1
    assert capsys.readouterr().err.splitlines() == [
        'missing: main_decoder.upsample.1.conv.bias', 'unexpected: fc.bias',
        'error: in.pth: 1 names are missing and 1 unexpected; nothing is written',
    ]  # fmt: skip
    assert not (cct.folder / 'new.pth').exists()
