# CCT on a quarter of the positions.
model = dict(auxiliary_head=dict(position_fraction=0.25))
