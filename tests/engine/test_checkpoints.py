from contextlib import nullcontext

import pytest
import torch

from mmseg_cct.engine.checkpoints import find_resumable, newest_checkpoint, read_checkpoint
from mmseg_cct.errors import UserError


class TestFindResumable:
    @pytest.fixture
    def work_dir(self, tmp_path):
        for number in (2, 4, 10):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / f'iter_{number}.pth')
        (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_10.pth'))
        return tmp_path

    @pytest.mark.parametrize(
        ('damages', 'expected', 'message'),
        [
            ({}, 10, ''),
            ({10: lambda data: data[:-30]}, 4, 'iter_10.pth: damaged: '),
            # in the nine zeros
            ({10: lambda data: data.replace(bytes(36), bytes(35) + b'1')}, 4, 'its checksum'),
            ({10: lambda _: b'', 4: lambda _: b'text'}, 2, "begins with b'text'"),
            (dict.fromkeys((10, 4, 2), lambda _: b''), None, "iter_2.pth: begins with b''"),
        ],
    )
    def test_a_damaged_one_gives_way_to_the_one_before(
        self, work_dir, messages, damages, expected, message
    ):
        for number, damage in damages.items():
            path = work_dir / f'iter_{number}.pth'
            path.write_bytes(damage(path.read_bytes()))
        path = expected and str(work_dir / f'iter_{expected}.pth')
        assert find_resumable(str(work_dir)) == path
        assert len(messages) == len(damages) and message in ''.join(messages[-1:])
        assert all(line.endswith('; trying the checkpoint before it') for line in messages)

    def test_names_of_the_hook_count_and_a_best_one_only_where_there_is_no_other(self, tmp_path):
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth', 'best_x_iter_50.pth', 'y-12345678.pth'):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / name)
        assert find_resumable(str(tmp_path), 'ck_{}.pth') == str(tmp_path / 'ck_20.pth')
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth'):
            (tmp_path / name).unlink()
        assert newest_checkpoint(str(tmp_path)) == str(tmp_path / 'best_x_iter_50.pth')
        for folder in (tmp_path, tmp_path / 'nowhere'):
            assert find_resumable(str(folder)) is None

    @pytest.mark.parametrize('content', [b'', b'\xff\0', None])
    def test_a_list_that_a_kill_has_emptied(self, work_dir, messages, content):
        (work_dir / 'last_checkpoint').unlink()
        if content is not None:
            (work_dir / 'last_checkpoint').write_bytes(content)
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_10.pth')

    def test_higher_numbers_of_an_earlier_training_do_not_count(self, work_dir, messages):
        (work_dir / 'last_checkpoint').write_text(str(work_dir / 'iter_4.pth'))
        (work_dir / 'iter_4.pth').write_bytes(b'')
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_2.pth')

    def test_a_moved_work_dir(self, work_dir, tmp_path_factory):
        moved = tmp_path_factory.mktemp('moved') / 'work'
        work_dir.rename(moved)
        assert find_resumable(str(moved)) == str(moved / 'iter_10.pth')


def write(path, **weights):
    content = dict(state_dict=weights, meta={}, optimizer={}, message_hub={})
    torch.save(content, path)
    return str(path)


@pytest.mark.parametrize('weights', [{}, {'a': [1.0]}])
def test_what_is_no_checkpoint_is_named(weights, tmp_path):
    path = write(tmp_path / 'x.pth', **weights)
    with pytest.raises(UserError) as caught:
        read_checkpoint(path)
    assert caught.value.problems[0].key == path


@pytest.mark.parametrize(
    ('weight', 'mean', 'fit_for'),
    [
        (1.0, 0.0, ('training', 'inference')),
        (1.0, torch.nan, ('training',)),  # the state before a loss that is not finite
        (torch.inf, 0.0, ()),
    ],
)
def test_weights_are_finite(weight, mean, fit_for, tmp_path):
    state = dict(w=torch.tensor([1.0, weight]), running_mean=torch.tensor([1.0, mean]))
    path = write(tmp_path / 'x.pth', **state)
    for use in ('training', 'inference'):
        with nullcontext() if use in fit_for else pytest.raises(UserError, match='1 of its wei'):
            read_checkpoint(path, training=use == 'training')
