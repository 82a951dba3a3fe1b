# CCT with the public code's ReLU after the last sub-pixel convolution. MMSegmentation's own heads
# have none: a dict that names a type is merged only into a main decoder of that type.
model = dict(
    decode_head=dict(type='PixelShuffleHead', final_activation=True),
    auxiliary_head=dict(final_activation=True),
)
