from mmseg_cct.utils.text import close_names, error_line, nearest, one_line


def test_lines_become_one_which_is_cut_and_an_error_names_its_type():
    assert one_line(ValueError('a\n  b\tc ')) == 'a b c'
    assert one_line('abcdef', max_length=3) == 'abc ...'
    assert error_line(KeyError('a')) == "KeyError: 'a'"


def test_a_misspelt_name_gets_the_nearest_and_another_all():
    names = ('SpatialDropout', 'FeatureDrop', 'FeatureNoise')
    assert close_names('FeatureDrp', names)[0] == 'FeatureDrop'
    assert nearest('FeatureNoize', names) == 'did you mean FeatureNoise or FeatureDrop?'
    assert nearest('xyz', names) == 'one of SpatialDropout, FeatureDrop, FeatureNoise'
