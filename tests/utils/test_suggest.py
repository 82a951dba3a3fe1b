from mmseg_cct.utils.suggest import close_names, nearest

NAMES = ('SpatialDropout', 'FeatureDrop', 'FeatureNoise')


def test_a_misspelt_name_gets_the_nearest_and_another_all():
    assert close_names('FeatureDrp', NAMES)[0] == 'FeatureDrop'
    assert nearest('FeatureNoize', NAMES) == 'did you mean FeatureNoise or FeatureDrop?'
    assert nearest('xyz', NAMES) == 'one of SpatialDropout, FeatureDrop, FeatureNoise'
