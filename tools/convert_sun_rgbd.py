#!/usr/bin/env python
"""Converts the labels of SUN RGB-D from 37 to 13 classes, for `SUNRGBDDataset`.

Images and labels are those of github.com/ankurhanda/sunrgbd-meta-data. Put the training images into
ROOT/images/train and the test images into ROOT/images/test; the masks go to ROOT/masks.

Example:
    mmseg-cct convert-sun-rgbd sunrgbd_labels data/sun_rgbd
"""

from mmseg_cct.cli.arguments import tool_parser
from mmseg_cct.cli.start import register, running


def main() -> None:
    """Runs the tool."""
    parser = tool_parser(__doc__)
    parser.add_argument('labels', help='folder of the label images, PNGs of the 37 classes')
    parser.add_argument('root', help='folder of the data set, which holds images/')
    args = parser.parse_args()
    with running(args):
        register()
        from mmseg_cct.datasets.sun_rgbd import convert_labels

        number = convert_labels(args.labels, args.root)
    print(f'{number} masks written to {args.root}/masks')


if __name__ == '__main__':
    main()
