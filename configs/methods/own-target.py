# CCT with the student's own predictions as targets, in training mode, as in the paper.
default_hooks = dict(teacher=None)
