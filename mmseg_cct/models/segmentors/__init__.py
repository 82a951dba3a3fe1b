from .cct import CCTSegmentor
from .input_vat import InputVATSegmentor
from .mean_teacher import MeanTeacherSegmentor

__all__ = ['CCTSegmentor', 'InputVATSegmentor', 'MeanTeacherSegmentor']
