"""Figures in sentences are those of the kept runs."""

import csv
import re
from itertools import product
from statistics import mean

import numpy as np
import pytest
import results_page as page

from mmseg_cct.studies.results import interval
from mmseg_cct.utils.text import signed

RUNS = page.read_runs()
# Numbers that are no figures, and figures whose runs were not kept.
ELSEWHERE = re.compile(
    r'3\.10 to 3\.14|glib2\.0|torch 2\.\d+( and 2\.\d+)?|Apache-2\.0|p < 0\.05|decay=0\.99'
    r'|2\.5 minutes|2\.2 to 2\.9 steps of the baseline|images alone brought \[5\.5\]'
    r'|Which classes.*?7\.2|Pavement \(.*?1\.7|same labels and machine.*?2\.14'
    r'|1\.6× less time|mmsegmentation` 1\.2\.2|ring \+14\.9.*?\+6\.0'
    r'|## One ingredient at a time.*?## '
)


def gains(labels, method='cct-strong', of='idd_lite', length=None, over=page.BASELINE, split=None):
    length = length or (2400 if labels == 100 else 1200)
    where = of, split or page.SPLITS[of], labels, length
    return [*page.gains_of([run for run in RUNS if run[:4] == where], method, over).values()]


def gain(*args, **kwargs):
    return f'{mean(gains(*args, **kwargs)):.1f}'


def half(*args, **kwargs):
    spread = page.spread_of(RUNS, kwargs.get('of', 'idd_lite'), kwargs.get('length', 0))
    return f'±{page.measured(gains(*args, **kwargs), spread).half:.1f}'


def headline(*args, **kwargs):
    """A gain that is bold where the first table of the results has it so."""
    text = gain(*args, **kwargs)
    return f'**{text}**' if f'**+{text} ±' in page.headlines(RUNS) else text


def miou(labels, method, of='idd_lite', length=None):
    length = length or (2400 if labels == 100 else 1200)
    where = of, page.SPLITS[of], labels, length, method
    return mean(run.miou for run in RUNS if run[:5] == where)


def worth(numbers, reached, **length):
    """As many labels give supervised training this mIoU, on the line through its means."""
    line = [miou(n, 'supervised', **length) for n in numbers]
    return np.exp(np.interp(reached, line, np.log(numbers)))


def long_gain(labels, method, seeds, iteration):
    """Mean gain in a long run after some iterations."""
    with page.CSV.with_name('curves.csv').open(newline='') as stream:
        own = [
            row
            for row in csv.DictReader(stream)
            if (row['labels'], row['length'], row['iteration'])
            == (str(labels), '12000', str(iteration))
        ]
    at = {(row['method'], int(row['seed'])): float(row['miou']) for row in own}
    return mean(at[method, seed] - at['supervised', seed] for seed in seeds)


@pytest.fixture(scope='module')
def sentences():
    few, long = (5, 10, 20, 50), dict(length=12000)
    labels = worth((*few, 100), [miou(n, 'cct-strong') for n in few])
    factors = [each / n for each, n in zip(labels, few)]
    times = f'{min(factors):.1f} to {max(factors):.1f} times'
    long_times = f'{worth((5, 20, 50, 100), miou(20, "cct-strong", **long), **long) / 20:.1f} times'
    cells = page.cells_of(page.main_runs(RUNS, 'idd_lite'))
    three = [interval(each) for each in cells.values() if len(each) == 3]
    spread = {
        n: page.common([each for (_, labels), each in cells.items() if labels == n]).deviation
        for n in (5, 100)
    }
    idd, camvid = (
        [each for n in numbers for each in gains(n, 'cct', of, over='own-target')]
        for of, numbers in (('idd_lite', (5, 20, 50, 100)), ('camvid', (20, 50, 100)))
    )
    higher = [sum(each > 0 for each in some) for some in (idd, idd + camvid)]
    drift = [
        signed(long_gain(20, 'cct-plus', [seed], at))
        for seed, at in product((0, 1, 2), (6000, 12000))
    ]
    return {
        'README.md': [
            f'supervised training with {times} the labels',
            f'more: +{gain(20, **long)} {half(20, **long)} with 20 labels',
        ],
        'docs/results.md': [
            f'{headline(5)} with 5 labels, {headline(20)} with 20, {headline(100)} with 100; '
            f'worth [{times}',
            f'{headline(20, **long)} with 20 labels, worth [about {long_times} the labels',
            f'20 labels, short runs: {headline(20, of="idd_lite_r50")}',
            f'[CamVid]: {headline(5, of="camvid")} with 5 labels',
            f'12 labels, with `cct`: {headline(12, "cct", of="shapes", length=1400)}',
            f'in {higher[1]} of {len(idd + camvid)} pairs',
            f'from ±{min(three):.1f} to ±{max(three):.1f} on IDD Lite',
            f'with 5 labels {spread[5]:.1f} mIoU, with 100 {spread[100]:.1f}',
            'with {:.0f}, {:.0f}, {:.0f} and {:.0f} (labels on a log axis)'.format(*labels)
            + f': {times} as many',
            f"teacher's it is {mean(idd):.1f} points higher, in {higher[0]} of {len(idd)} pairs",
            f'{long_gain(20, "cct-strong", range(4), 1200):.1f} after 1200 of these iterations, '
            f'{long_gain(20, "cct-strong", range(4), 6000):.1f} after 6000, {gain(20, **long)} at',
            f'about {long_times} the labels',
            f'{long_gain(5, "unimatch-tau0", [0], 9600):.1f} above supervised training at 9600',
            f'{-long_gain(5, "unimatch-tau0", [0], 8400):.1f} below at 8400',
            'gain was {} and {}, {} and {}, and {} and {} (seeds 0, 1, 2'.format(*drift),
            f'raises {miou(20, "supervised", "idd_lite_r50"):.1f} to '
            f'{miou(20, "cct-strong", "idd_lite_r50"):.1f} mIoU on val',
            f'by {gain(20, "cct", of="idd_lite_r50")} {half(20, "cct", of="idd_lite_r50")} (three',
            *(
                f'+{gain(20, f"{method}-fixed-r50")} {half(20, f"{method}-fixed-r50")} {end}'
                for method, end in (('cct-plus', 'over supervised'), ('cct-strong', 'where only'))
            ),
            f'gains spread by {page.common([gains(5, of="camvid")]).deviation:.1f}',
            f'{gain(100, of="camvid", split="val")} higher on val (three pairs), '
            f'but {gain(100, of="camvid")} on test',
            f'gain {gain(50, of="camvid", length=2400)} instead of {gain(50, of="camvid")} '
            f'({miou(50, "supervised", "camvid", 2400):.1f} → '
            f'{miou(50, "cct-strong", "camvid", 2400):.1f}, five pairs',
        ],
    }


@pytest.mark.parametrize('name', ['README.md', 'docs/results.md'])
def test_figures_in_sentences_are_those_of_the_runs(name, sentences):
    text = page.TABLE.sub('', (page.ROOT / name).read_text(encoding='utf-8'))
    text = re.sub(r'^```.*?^```$', '', text, flags=re.MULTILINE | re.DOTALL)
    text = ' '.join(re.sub(r'\]\([^)]*\)', ']', text).split())
    for sentence in sentences[name]:
        assert sentence in text
        text = text.replace(sentence, '')
    rest = re.findall(r'[^.]*\d\.\d[^.]*|[^.]*\d of \d+ pairs', ELSEWHERE.sub('', text))
    assert not rest, 'figures that no run is compared with'
