import zipfile

import pytest
import torch

from mmseg_cct.engine.checkpoints import (
    find_resumable,
    newest_checkpoint,
    saved_config,
)
from mmseg_cct.errors import UserError


def test_the_config_of_a_checkpoint_is_read_and_not_run(tmp_path):
    trained = dict(meta=dict(cfg="lr = 0.1\nmodel = dict(type='A')\n"))
    assert saved_config(trained, 'x.pth').to_dict() == dict(lr=0.1, model=dict(type='A'))
    foreign = dict(meta=dict(cfg=f"open({str(tmp_path / 'x')!r}, 'w')"))
    with pytest.raises(UserError, match=r'^x\.pth: its config is not a list of plain settings'):
        saved_config(foreign, 'x.pth')
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('content', [{}, dict(meta=None), dict(meta=dict(cfg=None))])
def test_a_checkpoint_may_carry_no_config(content):
    assert saved_config(content, 'x.pth') is None


class TestFindResumable:
    @pytest.fixture
    def work_dir(self, tmp_path):
        for number in (2, 4, 10):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / f'iter_{number}.pth')
        (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_10.pth'))
        return tmp_path

    def test_the_named_one(self, work_dir, messages):
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_10.pth')
        assert messages == []

    def test_a_truncated_one_gives_way_to_the_one_before(self, work_dir, messages):
        path = work_dir / 'iter_10.pth'
        path.write_bytes(path.read_bytes()[:-30])
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')
        (message,) = messages
        assert message.startswith(f'{path}: not a whole checkpoint, {path.stat().st_size} bytes')
        assert message.endswith('trying the checkpoint before it')

    def test_a_changed_byte_is_noticed(self, work_dir, messages):
        path = work_dir / 'iter_10.pth'
        data = bytearray(path.read_bytes())
        data[data.index(bytes(36)) + 5] ^= 1  # in the nine zeros
        path.write_bytes(data)
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')
        assert 'does not have its checksum' in messages[0]

    def test_several_damaged_ones(self, work_dir, messages):
        (work_dir / 'iter_10.pth').write_bytes(b'')
        (work_dir / 'iter_4.pth').write_text('text')
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_2.pth')
        assert len(messages) == 2

    def test_an_empty_archive_gives_way_too(self, work_dir, messages):
        zipfile.ZipFile(work_dir / 'iter_10.pth', 'w').close()
        assert find_resumable(str(work_dir)) == str(work_dir / 'iter_4.pth')

    def test_names_of_the_hook_count_and_a_best_one_only_where_there_is_no_other(self, tmp_path):
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth', 'best_x_iter_50.pth', 'y-12345678.pth'):
            torch.save({'state_dict': {'a': torch.zeros(9)}}, tmp_path / name)
        assert find_resumable(str(tmp_path), 'ck_{}.pth') == str(tmp_path / 'ck_20.pth')
        for name in ('ck_3.pth', 'ck_20.pth', 'iter_4.pth'):
            (tmp_path / name).unlink()
        assert newest_checkpoint(str(tmp_path)) == str(tmp_path / 'best_x_iter_50.pth')
        assert find_resumable(str(tmp_path)) is None

    def test_none_left(self, work_dir, messages):
        for number in (2, 4, 10):
            (work_dir / f'iter_{number}.pth').write_bytes(b'')
        assert find_resumable(str(work_dir)) is None
        assert find_resumable(str(work_dir / 'nowhere')) is None

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
