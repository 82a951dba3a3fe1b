import math

import pytest
from mmengine.config import Config

from mmseg_cct.analysis.ramps import Curve, planned_curves, plot_curves
from mmseg_cct.config.load import load_config
from mmseg_cct.errors import UserError

T = 200
WEIGHT = 'auxiliary_head.loss_consistency.loss_weight'


def make_config(**kwargs):
    return Config(
        dict(
            dict(
                train_cfg=dict(type='IterBasedTrainLoop', max_iters=T),
                optim_wrapper=dict(
                    optimizer=dict(type='AdamW', lr=0.5),
                    paramwise_cfg=dict(
                        custom_keys={
                            'backbone.': dict(lr_mult=0.1),
                            'norm': dict(decay_mult=0.0),
                            'neck.': dict(lr_mult=2.0),
                            'head.': dict(lr_mult=2.0),
                        }
                    ),
                ),
                param_scheduler=dict(type='PolyLR', power=0.9, eta_min=0.0, end=T, by_epoch=False),
                default_hooks=dict(logger=dict(type='LoggerHook'), timer=None),
                custom_hooks=[
                    dict(type='RampUpHook', attribute=WEIGHT, end=30.0, fraction=0.1),
                    dict(type='IterationSeedHook'),
                ],
            ),
            **kwargs,
        )
    )


def test_ramps_and_rates_are_those_of_the_training():
    ramp, *rates = planned_curves(make_config())
    assert (ramp.panel, ramp.label) == (WEIGHT, 'exp, 0 to 30 in 20 iterations')
    assert len(ramp.values) == T and ramp.values[20:] == [30] * (T - 20)
    assert ramp.values[10] == pytest.approx(30 * math.exp(-2.5))

    assert {curve.panel for curve in rates} == {'learning rate'}
    assert [curve.label for curve in rates] == ['other parameters', 'backbone.', 'neck., head.']
    for curve, factor in zip(rates, (1, 0.1, 2)):
        poly = [0.5 * factor * (1 - t / (T - 1)) ** 0.9 for t in range(T)]  # 0 in the last
        assert curve.values == pytest.approx(poly)


def test_an_end_that_is_none_is_taken_from_the_model():
    model = dict(type='MSEConsistency', loss_weight=7.0)
    ramp = dict(type='RampUpHook', attribute='loss_weight', fraction=0.1)
    curve = planned_curves(make_config(model=model, custom_hooks=[ramp]))[0]
    assert curve.label == 'exp, 0 to 7 in 20 iterations'
    assert curve.values[20:] == [7.0] * (T - 20)


def test_schedulers_follow_one_another():
    warm_up = dict(type='LinearLR', start_factor=0.5, begin=0, end=10, by_epoch=False)
    constant = dict(type='ConstantLR', factor=0.1, begin=100, by_epoch=False)
    epochs = dict(type='StepLR', step_size=1, by_epoch=True)
    curve = planned_curves(
        make_config(
            custom_hooks=None,
            param_scheduler=[warm_up, constant, epochs],
            optim_wrapper=dict(
                optimizer=dict(type='SGD', lr=2.0), paramwise_cfg=dict(custom_keys=None)
            ),
        )
    )[0]
    assert curve.label == 'all parameters'
    assert [curve.values[t] for t in (0, 9, 99, 100, 198)] == pytest.approx([1, 2, 2, 0.2, 0.2])


@pytest.mark.parametrize(
    ('kwargs', 'match'),
    [
        (dict(train_cfg=dict(type='EpochBasedTrainLoop', max_epochs=3)), 'no train_cfg.max_iters'),
        (
            dict(train_cfg=None),
            'no train_cfg.max_iters; expected a config that trains by iterations',
        ),
        (dict(optim_wrapper=None), 'no optim_wrapper.optimizer.lr; expected a learning rate'),
    ],
)
def test_a_config_that_plans_nothing_is_named(kwargs, match):
    with pytest.raises(UserError, match=match):
        planned_curves(make_config(**kwargs))


def test_curves_of_one_attribute_share_a_panel():
    curves = [Curve('a', 'x', [1, 2]), Curve('b', 'y', [3, 4]), Curve('a', 'z', [5, 6])]
    panels = plot_curves(curves).axes
    assert [axes.get_title() for axes in panels] == ['a', 'b']
    assert [line.get_ydata().tolist() for line in panels[0].lines] == [[1, 2], [5, 6]]


def test_a_shipped_config():
    config = load_config('cct-abce_r50_camvid_50', {})
    panels = {curve.panel for curve in planned_curves(config)}
    assert panels == {WEIGHT, 'decode_head.loss_decode.0.progress', 'learning rate'}
