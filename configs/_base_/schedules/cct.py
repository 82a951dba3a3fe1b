# A training of CCT: its hooks have names, by which a config or a method changes one.
_base_ = './iterations.py'
default_hooks = dict(
    # ω_u: from 0 to the model's λ_u over the first tenth of the training, by the equation in the
    # paper's supplement; its main text and the authors' code have 'gaussian'
    ramp_up=dict(
        type='RampUpHook',
        attribute='auxiliary_head.loss_consistency.loss_weight',
        schedule='exp',
        fraction=0.1,
    ),
)
