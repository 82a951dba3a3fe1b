import itertools
import pickle

import pytest

from mmseg_cct.errors import Problem, UserError, printable, raise_problems


def test_an_error_keeps_its_mistakes_with_a_place_and_in_another_process():
    error = UserError([Problem('a', 'x'), Problem('b', 'y', 'z')])
    assert str(error.within('set')) == 'set: a: x\nset: b: y; expected z'
    assert str(error.renamed(str.upper)) == 'A: x\nB: y; expected z'
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_problems_are_listed_once_each_up_to_an_error():
    def find():
        yield Problem('a', '', '1')
        yield UserError('b: 2')
        yield Problem('a', '', '1')
        raise UserError('c: 3')

    with pytest.raises(UserError) as caught:
        raise_problems(find())
    assert str(caught.value) == 'a: expected 1\nb: 2\nc: 3'
    raise_problems([])
    # a search ends where nobody would read on
    with pytest.raises(UserError) as caught:
        raise_problems(Problem(f'{number}.png', '', 'x') for number in itertools.count())
    *lines, last = str(caught.value).splitlines()
    assert len(lines) == 20
    assert last == '20 problems are shown; there are more'


def test_a_name_cannot_move_the_cursor_or_forge_a_line():
    for error in (UserError('a\x1b]0;b\x07\nerror: c', 'bad'), UserError('a\x1b]0;b\x07')):
        assert '\x1b' not in str(error) and '\n' not in str(error)
    assert printable('né中\xa0\udce9') == 'né中\xa0\\udce9'
