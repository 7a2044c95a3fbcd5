"""What population graphs, connectivity and federated training cost as one number grows, and what breaks first.

    python benchmarks/scale.py [subjects institutions regions rounds] [--threads 1] [--plot FOLDER] [--quick]
    python benchmarks/scale.py subjects --sizes 20000 --institutions 40 --features 1000 ...

The axes, each with its other numbers: subjects in five institutions, d = 7,381, scope `global`; institutions of 20
subjects, d = 7,381; regions of 200 subjects in five institutions, d = R (R - 1) / 2 from made-up series of 200 volumes;
rounds of 870 subjects in five institutions, d = 7,381, five folds. Training is FedGCN's, of one of five folds and one
round of two local epochs if not said otherwise, on the edges inside institutions. Options replace these numbers.

Connectivity and graph are made by the workflow's own scripts. Every step of every size is measured in a process of its
own, from the start of its interpreter to its last write. CPU seconds are those of all threads together: other work on
the machine lengthens the seconds, hardly them. Memory is the largest resident set, the pages of the features' file
among it. `expected MiB` are those after the imports plus those of the arrays in `scale/arrays.py`. An exponent is the
slope of log cost over log size, the cost of the imports taken off, by least squares in the upper half of the sizes:
there set-up weighs least. `share` is that of the matrix rate in the first layer's products of training, set-up
included, a CPU second for a CPU second.
"""

import argparse
import os
from dataclasses import fields
from pathlib import Path

from scale.work import AXES, Work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("axes", nargs="*", metavar="AXIS", help=f"some of {', '.join(AXES)}; all by default")
    parser.add_argument("--sizes", type=int, nargs="+", help="of the axes that are named")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, d = 200")
    parser.add_argument("--plot", type=Path, help="folder for one figure an axis")
    parser.add_argument("--folder", type=Path, help="for the made-up files, 4 bytes a feature and subject")
    for field in fields(Work):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=field.type)
    arguments = parser.parse_args()
    if unknown := set(arguments.axes) - {*AXES}:
        parser.error(f"expected some of {', '.join(AXES)}, found {', '.join(sorted(unknown))}")
    # A measured process imports this file, and must not pay for torch where its step does not.
    from scale.table import follow, matrix_rate

    given = {field.name: getattr(arguments, field.name) for field in fields(Work)}
    changed = {name: value for name, value in given.items() if value is not None}
    if arguments.sizes and not arguments.axes:
        parser.error("--sizes are those of an axis: name it")
    for axis in [AXES[name] for name in arguments.axes or AXES]:
        if fixed := sorted(axis.grows & {*changed}):
            parser.error(f"--{fixed[0]} is given, and grows along the axis {axis.name}: name other axes, or --sizes")
    if arguments.plot:
        arguments.plot.mkdir(parents=True, exist_ok=True)
    rate = matrix_rate(changed.get("threads", Work.threads))
    print(f"{os.cpu_count()} cores, square product of 2,048 at {rate:.0f} GFLOP in a CPU second")
    for axis in [AXES[name] for name in arguments.axes or AXES]:
        small = {"features": 200} if arguments.quick and axis.name != "regions" else {}
        sizes = arguments.sizes or (axis.quick if arguments.quick else axis.sizes)
        follow(axis, sizes, small | changed, rate, arguments.folder, arguments.plot)


if __name__ == "__main__":
    main()
