from mmengine.config import Config

from mmseg_cct.config.walk import changed_settings, forget_initial_weights, settings_of

PART = dict(a=1, b=[dict(c=2), 'text'], d=dict(e=None))


def test_every_setting_comes_with_its_key_and_before_what_it_holds():
    assert list(settings_of(PART)) == [
        ('a', 1),
        ('b', PART['b']),
        ('b.0', dict(c=2)),
        ('b.0.c', 2),
        ('b.1', 'text'),
        ('d', dict(e=None)),
        ('d.e', None),
    ]
    assert next(iter(settings_of(PART, 'model'))) == ('model', PART)
    assert list(settings_of(Config(PART)))[3] == ('b.0.c', 2)


def test_what_differs_has_both_values():
    after = dict(a=1, b=(dict(c=3), 'text'), d=dict(e=None, f=[]))
    assert changed_settings(PART, after) == [('b.0.c', 2, 3), ('d.f', 'none', [])]
    assert changed_settings(PART, Config(PART)) == []


def test_no_module_keeps_the_weights_that_it_would_start_from():
    pretrained = dict(type='Pretrained', checkpoint='x.pth')
    model = dict(
        backbone=dict(type='TimmViT', pretrained=True),
        other=dict(type='mmseg.TIMMBackbone'),
        neck=dict(init_cfg=pretrained),
        heads=[dict(init_cfg=[pretrained], pretrained='x.pth', channels=8)],
    )
    forget_initial_weights(model)
    assert model == dict(
        backbone=dict(type='TimmViT', pretrained=False),
        other=dict(type='mmseg.TIMMBackbone', pretrained=False),
        neck=dict(init_cfg=None),
        heads=[dict(init_cfg=None, pretrained=None, channels=8)],
    )
