"""CCT whose auxiliary decoders see a strong view."""

from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from .strong_views import StrongViewSegmentor


@MODELS.register_module()
class CCTStrongSegmentor(StrongViewSegmentor):
    """CCT whose auxiliary decoders see a strong view; the main decoder learns from labels alone.

    With a `TeacherHook` only the teacher sees the weak view::

        model = dict(type='CCTStrongSegmentor', cutmix=dict(type='CutMix'))
        default_hooks = dict(teacher=dict(type='TeacherHook', decay=0.99))
    """

    num_views = 1

    def loss(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> dict[str, Tensor]:
        """Computes L = L_s + ω_u L_u; keys are those of `CCTSegmentor`."""
        # labelled images: L_s
        losses = self.labeled_loss(inputs, data_samples)

        # weak views: the target ŷ, a constant
        weak = self.predict_weak(inputs, data_samples)

        # strong views, mixed like their target; while a GPU encodes, the host finds the objects
        (view,), (boxes,) = self.mix_strong(inputs)
        target, samples = weak.mix(boxes)
        objects = self.auxiliary_head.detect(target, target.shape[-2:], samples)
        (z,) = self.encode_strong([view])

        # auxiliary decoders on the strong views: L_u
        losses.update(self.auxiliary_loss(z, target, samples, objects))
        return losses
