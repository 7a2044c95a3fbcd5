"""What the printed noise formulas spend: multiplier and epsilon of a training of ABIDE's size, by each calibration.

The formulas name the epsilon of one release. A training is many. `spent` is of steps that draw subjects at random, as
this library does; `permuted` is of batches cut from a permutation, in which an epoch releases every subject once.
"""

import argparse

from brainfed.federation import PrivacySettings, epsilon_spent, noise_multiplier

BUDGETS = (2.0, 5.0, 10.0, 20.0)
SUBJECTS = (166, 207)
"""Training subjects of the smallest and the largest of four institutions."""


def main() -> None:
    given = arguments()
    steps = {count: given.rounds * given.local_epochs * -(-count // given.batch) for count in SUBJECTS}
    print(f"delta {given.delta:g}, batch {given.batch}, {given.rounds} rounds x {given.local_epochs} local epochs")
    heads = ("subjects", 9), ("steps", 7), ("multiplier", 11), ("one release", 12), ("spent", 9), ("permuted", 9)
    print(f"{'calibration':<12}{'epsilon':>8}" + "".join(f"{head:>{width}}" for head, width in heads))
    for privacy in ("paper", "classical", "accountant"):
        for epsilon in BUDGETS:
            for count in SUBJECTS:
                settings = PrivacySettings(privacy, epsilon, given.delta)
                rate = min(given.batch / count, 1.0)
                multiplier = noise_multiplier(settings, rate, steps[count])
                once = epsilon_spent(multiplier, 1.0, 1, given.delta)
                spent = epsilon_spent(multiplier, rate, steps[count], given.delta)
                permuted = epsilon_spent(multiplier, 1.0, given.rounds * given.local_epochs, given.delta)
                print(
                    f"{privacy:<12}{epsilon:>8g}{count:>9}{steps[count]:>7}{multiplier:>11.3f}{once:>12.2f}{spent:>9.2f}"
                    f"{permuted:>9.2f}"
                )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--local-epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--delta", type=float, default=1e-5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
