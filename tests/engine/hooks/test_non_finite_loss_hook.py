import torch
from dispatch import DispatchCounter
from mmseg.structures import SegDataSample

from mmseg_cct.engine.hooks.non_finite_loss_hook import NonFiniteLossHook, _files


def test_a_file_with_several_views_is_named_once():
    def samples(*names):
        return [SegDataSample(metainfo=dict(img_path=name)) for name in names]

    views = dict(
        labeled=samples('a.jpg'),
        unlabeled=samples('b.jpg', 'c.jpg'),
        unlabeled_strong_0=samples('b.jpg', 'c.jpg'),
    )
    assert _files(dict(data_samples=views)) == 'a.jpg, b.jpg, c.jpg'


def test_the_log_takes_one_copy_of_all_terms():
    hook = NonFiniteLossHook()
    losses = dict(
        loss_a=torch.tensor([1.0, 3.0]), loss_b=torch.tensor(0.5), share=torch.tensor(0.2)
    )
    with DispatchCounter() as counter:
        hook._watch(None, None, losses)
        hook._judge()
    assert counter.calls['_local_scalar_dense'] <= 1
    outputs = dict(loss=torch.tensor(-1.0), loss_a=torch.tensor(-1.0), other='kept')
    hook.after_train_iter(None, 0, outputs=outputs)
    assert {k: float(v) for k, v in outputs.items() if k != 'other'} == dict(loss=2.5, loss_a=2.0)
    assert outputs['other'] == 'kept' and 'share' not in outputs


def test_an_iteration_without_losses_keeps_its_outputs():
    hook, outputs = NonFiniteLossHook(), dict(loss=torch.tensor(1.0))
    hook.after_train_iter(None, 0, outputs=outputs)
    assert outputs == dict(loss=torch.tensor(1.0))
