#!/usr/bin/env python
"""Draws walls with thin cracks as a folder that mmseg-cct new-config takes.

About 0.9 % of the pixels are crack; a quarter of the images have none. Joints, stains and pale
scratches look similar. docs/experiments.md has the study.

Example:
    python examples/draw_cracks.py data/cracks
"""

import argparse
from pathlib import Path

import cv2
import numpy as np

SIZE = 96  # pixels
FINE = 4  # subpixels per pixel side, in which cracks are drawn
LABELED, UNLABELED, VALIDATION = 20, 100, 60  # images


def draw_wall(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws wall `number`: the image, `(H, W, 3)` uint8, and class ids, `(H, W)`, 1 for crack."""
    rng = np.random.default_rng([7, number])
    image = _ground(rng)
    mask = _crack(rng) if number % 4 != 3 else np.zeros((SIZE, SIZE), np.uint8)
    depth = rng.uniform(0.35, 0.6) * (0.8 + 0.2 * _noise(rng, 12))
    image *= 1 - (depth * cv2.GaussianBlur(mask.astype(np.float32), (3, 3), 0.5))[..., None]
    image = cv2.GaussianBlur(image, (3, 3), rng.uniform(0.2, 0.6))
    image += rng.uniform(0.01, 0.03) * rng.standard_normal(image.shape)
    return (image.clip(0, 1) * 255).astype(np.uint8), mask


def _ground(rng: np.random.Generator) -> np.ndarray:
    """Plaster of several scales with a joint, stains and scratches, float32 in about [0, 1]."""
    grain = sum(_noise(rng, cells) / 2**k for k, cells in enumerate((3, 8, 24, 64)))
    tone = np.float32(rng.uniform(0.45, 0.75)) * rng.uniform(0.92, 1.08, 3).astype(np.float32)
    image = tone * (1 + rng.uniform(0.08, 0.16) * grain)[..., None]
    for _ in range(rng.integers(0, 4)):  # stains: dark, and round
        stain = np.zeros((SIZE, SIZE), np.float32)
        axes = rng.integers(2, 7, 2).tolist()
        cv2.ellipse(stain, rng.integers(0, SIZE, 2).tolist(), axes, 0, 0, 360, 1, -1)
        stain = cv2.GaussianBlur(stain, (0, 0), 1.5)
        image *= 1 - rng.uniform(0.1, 0.4) * stain[..., None]
    for _ in range(rng.integers(0, 3)):  # scratches: as thin, but pale and straight
        start, end = rng.integers(0, SIZE, (2, 2)).tolist()
        cv2.line(image, start, end, (1.25 * tone).tolist(), 1, cv2.LINE_AA)
    if rng.random() < 0.4:  # a joint: dark, but wide and straight
        at = int(rng.integers(8, SIZE - 8))
        ends = [(at, 0), (at, SIZE)] if rng.random() < 0.5 else [(0, at), (SIZE, at)]
        joint = cv2.line(np.zeros((SIZE, SIZE), np.float32), *ends, 1, int(rng.integers(4, 7)))
        image *= 1 - rng.uniform(0.15, 0.35) * joint[..., None]
    return image


def _crack(rng: np.random.Generator) -> np.ndarray:
    """A crack and perhaps a branch of it, 1.5 to 3 pixels wide; a mask of 0 and 1."""
    fine = np.zeros((FINE * SIZE, FINE * SIZE), np.uint8)
    place, turn = rng.uniform(0.15 * SIZE, 0.85 * SIZE, 2), rng.uniform(0, 2 * np.pi)
    steps = int(rng.integers(6, 16))
    start, heading = int(rng.integers(4, 2 * steps)), rng.choice([-0.9, 0.9])
    path, turns = _draw_walk(rng, fine, place, turn, steps)
    if start < steps:
        _draw_walk(rng, fine, path[start], turns[start] + heading, steps // 2)
    shares = cv2.resize(fine, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
    return (shares > 127).astype(np.uint8)


def _draw_walk(
    rng: np.random.Generator, fine: np.ndarray, place: np.ndarray, turn: float, steps: int
) -> tuple[list[np.ndarray], list[float]]:
    """Draws a walk that turns little by little; returns its places and headings."""
    path, turns = [place], [turn]
    for _ in range(steps):
        turn += rng.normal(0, 0.35)
        place = place + 3 * np.array([np.cos(turn), np.sin(turn)])
        path.append(place)
        turns.append(turn)
    points = np.round(np.array(path) * FINE * 16).astype(np.int32)
    cv2.polylines(fine, [points], False, 255, round(FINE * rng.uniform(1.5, 3.0)), shift=4)
    return path, turns


def _noise(rng: np.random.Generator, cells: int) -> np.ndarray:
    """Enlarges a coarse random grid; its values are about in [-1, 1]."""
    coarse = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
    return cv2.resize(coarse, (SIZE, SIZE), interpolation=cv2.INTER_CUBIC)


def write_walls(out: Path) -> None:
    """Writes images and masks; the first `LABELED` images and those of `val` have a mask."""
    train = range(LABELED + UNLABELED)
    for folder, numbers in ((out, train), (out / 'val', range(10000, 10000 + VALIDATION))):
        for kind in ('images', 'masks'):
            (folder / kind).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            image, mask = draw_wall(number)
            cv2.imwrite(str(folder / f'images/{number:05d}.png'), image)
            if number < LABELED or folder != out:
                cv2.imwrite(str(folder / f'masks/{number:05d}.png'), mask)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('out', type=Path, metavar='DIR', help='folder to write to')
    write_walls(parser.parse_args().out)
