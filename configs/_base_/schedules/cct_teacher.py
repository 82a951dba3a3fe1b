# Like cct.py, with the targets of an EMA teacher; the network's own would mislead it. For all but
# reproductions of the paper (docs/results.md).
_base_ = './cct.py'
default_hooks = dict(teacher=dict(type='TeacherHook', decay=0.99))
