"""Names of configs; what is checked before torch is imported is in `test_new_config`."""

import pytest

from mmseg_cct.writer.choices import plain_name


@pytest.mark.parametrize(
    ('name', 'plain'),
    [("it's", 'it-s'), ('my data', 'my-data'), ('v1.2', 'v1.2'), ('$x;"y"', '-x-y-'), ('ö', 'ö')],
)
def test_a_name_keeps_what_a_shell_and_python_leave_alone(name, plain):
    assert plain_name(f'data/{name}') == plain
