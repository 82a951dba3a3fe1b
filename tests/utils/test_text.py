from mmseg_cct.utils.text import error_line, one_line


def test_lines_become_one():
    assert one_line(ValueError('a\n  b\tc ')) == 'a b c'


def test_a_long_line_is_cut():
    assert one_line('abcdef', max_length=3) == 'abc ...'
    assert one_line('abc', max_length=3) == 'abc'


def test_an_error_names_its_type():
    assert error_line(KeyError('a')) == "KeyError: 'a'"
