"""Made-up scores of methods without poison, with it, and with a defence."""

from brainfed.evaluation import INSTITUTION, POOLED
from brainfed.reporting import Interval, ShownVariant

SCORES = {
    "gahfl": 0.70,
    "gahfl-fig2-paf": 0.68,
    "gahfl-fig2-ofom": 0.64,
    "gahfl-median": 0.69,
    "gahfl-median-paf": 0.69,
    "fedet": 0.66,
    "fedet-fig2-paf": 0.60,
    "fedet-fig2-ofom": 0.64,
}


class Scored:
    """One score a variant, the same for accuracy and AUC, with intervals of .01 to both sides."""

    def interval(self, variant, metric):
        return Interval(SCORES[variant], SCORES[variant] - 0.01, SCORES[variant] + 0.01, 5)

    def beside(self, variant, other, metric):
        return self.interval(variant, metric)

    def difference(self, variant, other, metric, scope=INSTITUTION):
        gap = SCORES[variant] - SCORES[other] - (0.001 if scope == POOLED else 0)
        return Interval(gap, gap - 0.01, gap + 0.01, 5)


def variant(name):
    attack = next((word for word in ("paf", "ofom") if name.endswith(word)), "none")
    settings = {
        "attack": attack,
        "attacked": 0.5 if attack == "ofom" else 0.25,
        "defence": "median" if "median" in name else "none",
    }
    method = name.split("-")[0]
    return ShownVariant(name, method, method.title(), "federated", settings, stages={"public": {"ratio": 0.3}})


VARIANTS = [variant(name) for name in SCORES]
