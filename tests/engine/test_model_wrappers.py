from mmengine.registry import MODEL_WRAPPERS
from torch import nn

from mmseg_cct.engine.model_wrappers import unwrap_model


def test_a_wrapper_is_taken_off_and_a_part_called_module_is_not(monkeypatch):
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

    model = nn.Linear(1, 1)
    own = Wrapper(model)
    assert unwrap_model(own) is own
    monkeypatch.setitem(MODEL_WRAPPERS.module_dict, 'Wrapper', Wrapper)
    assert unwrap_model(Wrapper(model)) is model
    assert unwrap_model(model) is model
