_base_ = './default_runtime.py'
# the decoders of the domains that wait for their turn are unused
find_unused_parameters = True
default_hooks = dict(checkpoint=dict(save_best='mIoU_avg'))
visualizer = dict(type='MultiDomainVisualizer')
