# CCT with the public code's ReLU after the last sub-pixel convolution. MMSegmentation's own heads
# have none: what names a type is merged into a main decoder of this type alone.
model = dict(
    decode_head=dict(type='PixelShuffleHead', final_activation=True),
    auxiliary_head=dict(final_activation=True),
)
