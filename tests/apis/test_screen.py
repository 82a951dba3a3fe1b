"""The lines of a step on the terminal; the log file keeps them whole."""

import logging

import pytest

from mmseg_cct.apis.screen import ScreenFormatter, is_for_the_screen, short_step


def test_a_training_step_shows_rate_remaining_time_and_the_terms_of_the_loss():
    line = (
        'Iter(train) [  20/6000]  base_lr: 1.0e-02  lr: 7.0e-03  eta: 0:01:10  time: 0.04  '
        'data_time: 0.01  memory: 900  auxiliary_head.loss_consistency.loss_weight: 15.0  '
        'loss: 1.1  decode.loss_ce: 0.6  decode.acc_seg: 85.5  aux.loss: 0.5  '
        'aux.consistency: 0.03  camvid.decode.loss_ce: 0.2  aux.agreement: 0.7'
    )
    assert short_step(line) == (
        'Iter(train) [  20/6000]  lr: 7.0e-03  eta: 0:01:10  loss: 1.1  decode.loss_ce: 0.6  '
        'aux.loss: 0.5  camvid.decode.loss_ce: 0.2'
    )


def test_a_validation_shows_its_means():
    line = (
        'Iter(val) [5/5]    aAcc: 85.5  mIoU: 48.7  camvid/mIoU: 40.0  IoU.living thing: 85.6  '
        'camvid/IoU.disc: 58.6  Acc.disc: 60.0  data_time: 0.01  time: 0.02'
    )
    assert short_step(line) == 'Iter(val) [5/5]  aAcc: 85.5  mIoU: 48.7  camvid/mIoU: 40.0'


def test_other_lines_stay_and_the_record_is_not_changed():
    line = 'Note: 1 of 7 classes  at IoU 0: star; time: late'
    assert short_step(line) == line
    step = 'Iter(val) [5/5]    mIoU: 48.7  time: 0.02'
    record = logging.LogRecord('mmengine', logging.INFO, 'a.py', 1, step, None, None)
    assert ScreenFormatter(color=False).format(record).endswith('Iter(val) [5/5]  mIoU: 48.7')
    assert record.getMessage() == step


@pytest.mark.parametrize(
    ('line', 'shown'),
    [
        ('\n-----------\nSystem environment:', False),
        ('Config:\nmodel = 1', False),
        ('Hooks will be executed in the following order:\n', False),
        ('"FileClient" will be deprecated in future', False),
        ('Training on 5 images', True),
        (ValueError('Config'), True),
    ],
)
def test_the_screen_is_spared_what_is_for_the_file(line, shown):
    record = logging.makeLogRecord(dict(msg=line))
    assert is_for_the_screen(record) == shown
