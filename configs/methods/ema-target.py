# CCT with the targets of an EMA teacher.
default_hooks = dict(teacher=dict(type='TeacherHook', decay=0.99))
