from mmseg_cct.utils.markdown import markdown_table


def test_text_left_and_numbers_right():
    assert markdown_table(['class', 'IoU', ''], [['sky', '90.1', '+1'], ['car', '', '–']]) == (
        '| class | IoU |  |\n| --- | ---: | ---: |\n| sky | 90.1 | +1 |\n| car |  | – |'
    )


def test_the_head_alone_with_its_own_alignment():
    assert markdown_table(['n', 'at'], align='rl') == '| n | at |\n| ---: | --- |'
