# CCT with the public code's ReLU after the last sub-pixel convolution.
model = dict(
    decode_head=dict(final_activation=True),
    auxiliary_head=dict(final_activation=True),
)
