# CCT with the student's own predictions as targets, in eval mode.
default_hooks = dict(teacher=dict(type='TeacherHook', decay=1e-6))
