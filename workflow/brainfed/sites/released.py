"""What a study releases about the subjects of one site: exact sums over sets of them, and epsilon of all trainings."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.configuration.layout import is_private, sets_added_up, split_file, trains_jointly
from brainfed.configuration.planning import Experiment, Plan, Variant
from brainfed.federation import Steps, composed_epsilon, planned_steps
from brainfed.runtime import UserError, read_table, restore
from brainfed.sites.study import StudyPlace

IntArray = NDArray[np.int64]

SHARE = 4
"""Subjects of a site for each set of them that is added up; with fewer a study is refused."""


@dataclass(frozen=True)
class Stated:
    """What a study's file says of it.

    Attributes:
        sets: number of different sets of one site's subjects of which exact numbers are added up.
        accept_reconstruction: whether the study runs though these may suffice to compute single subjects.
        epsilon: bound for one subject over all private trainings: `study.epsilon`, or else the largest epsilon of a
            private variant, which a single training keeps; 0 without private variants.
    """

    sets: int
    accept_reconstruction: bool
    epsilon: float

    @classmethod
    def of(cls, plan: Plan) -> "Stated":
        """Of the study's plan."""
        study, experiments = plan.project.study, plan.experiments.values()
        own = [
            float(variant.settings["epsilon"])
            for experiment in experiments
            for variant in experiment.variants
            if experiment.default and trains_jointly(variant) and is_private(variant)
        ]
        sets = sets_added_up(experiments, len(study.sites))
        return cls(sets, study.accept_reconstruction, study.epsilon or max(own, default=0.0))


@dataclass(frozen=True)
class Released:
    """Of one site.

    Attributes:
        subjects: number of its subjects with a label, which alone are trained on.
        epsilon: upper bound for one subject over all private trainings of the study, each fold, repeat and variant; 0
            without private variants, infinity if variants without privacy train beside them.
        delta: of this bound.
    """

    subjects: int
    epsilon: float = 0.0
    delta: float = 0.0

    def words(self) -> dict[str, Any]:
        """What the site says of it to the coordinator; an infinite epsilon is None."""
        return asdict(self) | {"epsilon": self.epsilon if self.epsilon < inf else None}


def released_by(place: StudyPlace) -> Released:
    """What the study releases about this site's subjects, by the splits of its run.

    Raises:
        UserError: no noise keeps a training within its epsilon.
    """
    splits = {
        (experiment.regime.split, repeat)
        for experiment in place.plan.experiments.values()
        for repeat in range(experiment.repeats)
        if experiment.default
    }
    tables = {run: read_table(split_file(place.cohort, *run), ("fold",)) for run in splits}
    return released_of(place.plan, {run: table["fold"].to_numpy() for run, table in tables.items()})


def released_of(plan: Plan, folds: Mapping[tuple[str, int], IntArray]) -> Released:
    """What a study releases about a site's subjects.

    Args:
        plan: of the study.
        folds: split and repeat -> (n,) fold of each subject of the site.

    Raises:
        UserError: no noise keeps a training within its epsilon.
    """
    # A subject without a label is in no fold, and trains in none.
    tested = {run: fold[fold >= 0] for run, fold in folds.items()}
    return Released(max(map(len, tested.values()), default=0), *epsilon_of(plan, tested))


def epsilon_of(plan: Plan, folds: Mapping[tuple[str, int], IntArray]) -> tuple[float, float]:
    """Upper bound of the epsilon of all private trainings of a study for any one subject of a site, and its delta.

    Args:
        plan: of the study.
        folds: split and repeat -> (n,) fold in which each labelled subject of the site is tested.
    """
    private, exact = dict[tuple[str, str], tuple[Experiment, Variant]](), False
    for experiment in (each for each in plan.experiments.values() if each.default):
        for variant in filter(trains_jointly, experiment.variants):
            exact = exact or not is_private(variant)
            if is_private(variant):
                private[experiment.regime.name, variant.name] = experiment, variant
    kinds, delta = list[Steps](), 0.0
    for experiment, variant in private.values():
        settings: Any = restore(variant.method.settings, variant.settings)
        delta = max(delta, settings.delta)
        for repeat in range(experiment.repeats):
            fold = folds[experiment.regime.split, repeat]
            if experiment.regime.unseen:
                # The site trains with all its subjects in every fold but its own.
                counts = [len(fold)] * (len(plan.project.study.sites) - 1)
            else:
                # A subject is tested in one fold; it trains in the others, of which those that spend most are taken.
                counts = [int((fold != each).sum()) for each in np.unique(fold)]
            steps = [planned_steps(settings, count) for count in counts]
            steps.sort(key=lambda each: composed_epsilon((each,), settings.delta), reverse=True)
            kinds += steps if experiment.regime.unseen else steps[:-1]
    if not kinds:
        return 0.0, 0.0
    return (inf if exact else composed_epsilon(_joined(kinds), delta)), delta


def _joined(kinds: Iterable[Steps]) -> tuple[Steps, ...]:
    """Steps of one noise and sampling rate as one kind."""
    total: Counter[tuple[float, float]] = Counter()
    for multiplier, rate, steps in kinds:
        total[multiplier, rate] += steps
    return tuple((multiplier, rate, steps) for (multiplier, rate), steps in sorted(total.items()))


def require_accepted(where: str, stated: Mapping[str, Any], released: Mapping[str, Any]) -> None:
    """Refuse a study that would release more of a site's subjects (words of `Released`) than its file states.

    Raises:
        UserError: with so few subjects exact sums may suffice to compute single ones, or epsilon is above its bound.
    """
    sets, subjects, accepted = int(stated["sets"]), int(released["subjects"]), bool(stated["accept_reconstruction"])
    if sets * SHARE > subjects and not accepted:
        # With folds there are two sets at the least; where sites are left out in turn, one.
        helps = sets > 1 and subjects >= 2 * SHARE
        remedy = "lower split.repeats or split.folds, give methods a single penalty" if helps else "bring more subjects"
        raise UserError(
            f"{where}: expected {SHARE * sets} subjects or more, as the study adds up exact numbers of {sets} "
            f"different set{'s' if sets > 1 else ''} of them (folds, inner folds, repeats), found {subjects}: the "
            "coordinator could compute features of single subjects from the sums; "
            f"{remedy}, or set study.accept_reconstruction: true in the study's file if all sites accept that."
        )
    bound, epsilon = float(stated["epsilon"]), released["epsilon"]
    if epsilon is None and not accepted:
        raise UserError(
            f"{where}: expected private variants alone, as epsilon {bound:g} is stated for all that the study "
            "releases, found variants without privacy beside them; take these out, or set "
            "study.accept_reconstruction: true in the study's file: then no bound holds."
        )
    if epsilon is not None and not float(epsilon) <= bound:
        raise UserError(
            f"{where}: expected all private trainings of the study to spend epsilon {bound:g} or less for one subject, "
            f"as its file states, found {_budget(float(epsilon))} over folds, repeats and variants together, at delta "
            f"{float(released['delta']):g}; set study.epsilon to a bound that all sites accept, lower the variants' "
            "epsilon, or take fewer repeats, folds or variants."
        )


def require_releasable(plan: Plan, labelled: int, folds: Mapping[tuple[str, int], IntArray] | None) -> None:
    """Refuse, before a site joins, a study that would release more of its subjects than the study's file states.

    Args:
        plan: of the study, with its site.
        labelled: number of the site's subjects with a label.
        folds: as of `released_of`; None where they cannot be drawn.

    Raises:
        UserError: as of `require_accepted`.
    """
    released = Released(labelled) if folds is None else released_of(plan, folds)
    require_accepted(f"site {plan.project.study.site!r}", asdict(Stated.of(plan)), released.words())


def _budget(epsilon: float) -> str:
    return f"{epsilon:.1f}" if epsilon < 1e6 else f"{epsilon:.3g}"


def sentence_of(stated: Stated, released: Released) -> str:
    """What a site's person reads before the site joins."""
    said = [f"the study adds up numbers of {stated.sets} different sets of this site's {released.subjects} subjects"]
    if stated.sets * SHARE > released.subjects:
        said[0] += ", enough for the coordinator to compute features of single subjects"
    if released.epsilon == inf:
        said.append("variants without privacy train beside private ones, so no epsilon bounds the whole")
    elif released.epsilon:
        said.append(
            f"its private trainings together spend epsilon {_budget(released.epsilon)} at most for one subject (delta "
            f"{released.delta:g}), of {stated.epsilon:g} that its file states"
        )
    return "; ".join(said)
