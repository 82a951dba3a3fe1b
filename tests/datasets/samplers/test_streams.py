"""Random streams: permutations without end, and a seed for each draw."""

from mmseg_cct.datasets.samplers.streams import stream_index, stream_seed


def test_every_pass_is_a_fresh_permutation():
    for stream, size, different in ((0, 5, 6), (1, 7, 10)):
        drawn = [stream_index(size, 3, stream, position) for position in range(10 * size)]
        passes = [tuple(drawn[start : start + size]) for start in range(0, 10 * size, size)]
        assert all(sorted(one) == list(range(size)) for one in passes)
        assert len(set(passes)) >= different


def test_every_draw_has_its_own_augmentation():
    seeds = {stream_seed(3, stream, position) for stream in (0, 1) for position in range(200)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_in_order_without_shuffle():
    drawn = [stream_index(5, 3, 0, position, shuffle=False) for position in range(8)]
    assert drawn == [0, 1, 2, 3, 4, 0, 1, 2]
