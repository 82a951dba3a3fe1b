from mmseg_cct.utils.markdown import markdown_table


def test_text_left_and_numbers_right():
    assert markdown_table(['class', 'IoU', ''], [['sky', '90.1', '+1'], ['car', '', '–']]) == (
        '| class | IoU |  |\n| --- | ---: | ---: |\n| sky | 90.1 | +1 |\n| car |  | – |'
    )


def test_the_head_alone_with_its_own_alignment():
    assert markdown_table(['n', 'at'], align='rl') == '| n | at |\n| ---: | --- |'


def test_a_bar_in_a_cell_ends_no_cell():
    table = markdown_table(['a|b', 'IoU'], [['c|d', '1']])
    assert table == '| a\\|b | IoU |\n| --- | ---: |\n| c\\|d | 1 |'
