"""A made-up cohort: its subjects, the coverage of their regions, their motion, and a population graph."""

from dataclasses import replace

import numpy as np
import pandas as pd

from brainfed.cohort.quality import QUALITY_MEASURES
from brainfed.graphs import PopulationGraph
from brainfed.reporting.tables import ShownGraph


def people(sites=20):
    random = np.random.default_rng(0)
    count = 4 * sites + 30
    frame = pd.DataFrame(
        {
            "subject": [f"s{number:03d}" for number in range(count)],
            "site": [f"A_LONG_SITE_NAME_{number % sites:02d}" for number in range(count)],
            "age": random.uniform(6, 60, count),
            "sex": random.choice(["male", "female"], count),
            "diagnosis": pd.array(random.integers(0, 2, count), dtype="Int8"),
            "mean_fd": random.lognormal(-2, 0.6, count),
            "has_series": True,
            "included": True,
            "timepoints": random.integers(80, 300, count),
            "tr": 2.0,
            "silent_regions": np.where(np.arange(count) < 5, 3.0, 0.0),
            "tsnr": random.uniform(20, 90, count),
            "mean_fc": random.normal(0.1, 0.03, count),
            "typicality": random.beta(8, 4, count),
        }
    ).assign(
        twin_group=lambda frame: frame["subject"],
        reason="",
        volumes=lambda frame: frame["timepoints"] + 5,
        kept_seconds=lambda frame: frame["timepoints"] * frame["tr"],
        typicality_z=lambda frame: 6 * (frame["typicality"] - 0.7) / 0.2,
    )
    frame.loc[:1, ["included", "reason"]] = [[False, "no series"], [False, "Subject s001: damaged file"]]
    return frame


def coverage():
    regions = [f"region-{number:03d}" for number in range(60)]
    return pd.DataFrame([(s, r, 0.5 if r.endswith("7") else 1.0) for s in ("s010", "s011") for r in regions],
                        columns=["subject", "region", "coverage"])  # fmt: skip


def connections():
    r = np.random.default_rng(5).normal(0.05, 0.12, 500)
    return pd.DataFrame({"r": r, "p": 0.5})


def with_reasons(count):
    """The first subjects left out, each for a reason of its own."""
    reasons = [
        "series file absent", "Subject s: damaged", "diagnosis missing", "118 regions without signal",
        "mean FD above 0.5 mm (0.7)", "number of regions without signal above 5 (9)", "kept length below 240 s (90)",
        "mean coverage of regions below 90 % (40)",
    ]  # fmt: skip
    frame = people().assign(included=True, reason="")
    frame.loc[: count - 1, "reason"] = reasons[:count]
    return frame.assign(included=frame["reason"] == "")


def unmeasured():
    return people().assign(**dict.fromkeys([*QUALITY_MEASURES], np.nan))


def shown_graph():
    """Two institutions of ten; in each, a ring of men and a ring of women."""
    row, column = [], []
    for start in (0, 5, 10, 15):
        for number in range(5):
            pair = (start + number, start + (number + 1) % 5)
            row += pair
            column += pair[::-1]
    frame = pd.DataFrame(
        {
            "subject": [f"s{number:02d}" for number in range(20)],
            "institution": ["a"] * 10 + ["b"] * 10,
            "sex": (["male"] * 5 + ["female"] * 5) * 2,
            "diagnosis": pd.array([0, 1] * 10, dtype="Int8"),
            "site": ["X"] * 20,
            "age": np.linspace(10, 40, 20),
        }
    )
    weight = np.ones(len(row), dtype=np.float32)
    graph = PopulationGraph(np.array(row), np.array(column), weight, np.zeros((20, 2), dtype=np.float32), (1.0,))
    return ShownGraph("local-k2", graph, frame, "local", False)


def swept_graphs():
    """Two repeats of each k, and the shuffled control of one of them."""
    graphs = [
        replace(shown_graph(), name=f"local-k{k}", settings={"k": k, "age_gap": 2.0}) for k in (5, 10) for _ in range(2)
    ]
    return [*graphs, replace(graphs[0], name="control", shuffled=True)]
