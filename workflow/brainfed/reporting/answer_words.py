"""The answer in words: one line, and the numbers behind it.

The sentences say no more than the tests: what does not survive the corrections is called not significant, and where
there are too few runs, nothing was tested. That imaging adds nothing is said on top only where even the interval that
is not corrected for choosing the best method holds zero.
"""

from brainfed.reporting.answer import ALONE, LOCAL, NO_IMAGING, POOLED, REFERENCE, Answer, Comparison
from brainfed.reporting.intervals import signed


def verdict(answer: Answer) -> str:
    """The answer in one line."""
    if answer.chosen is None:
        return "No federated method was run"
    if answer.comparisons and not any(comparison.tested for comparison in answer.comparisons):
        return "Too few runs to tell whether federation pays"
    alone, pooled, blind = (answer.against(role) for role in (ALONE, POOLED, NO_IMAGING))
    said = []
    if alone is not None:
        name = "averaging the other sites\u2019 own models" if answer.unseen else "learning alone"
        said.append(_outcome(alone, f"beats {name}", f"shows no significant gain over {name}", f"loses to {name}"))
    if pooled is not None:
        equal = "does not differ significantly from pooling all data"
        said.append(_outcome(pooled, "beats pooling all data", equal, "falls short of pooling all data"))
    if not said and (reference := answer.against(REFERENCE)) is not None:
        name = reference.other.title
        equal = f"does not differ significantly from {name}"
        said.append(_outcome(reference, f"beats {name}", equal, f"falls short of {name}"))
    if blind is not None and not (said and blind.difference.low > 0):
        name = "guessing without imaging"
        said.append(
            _outcome(blind, f"beats {name}", f"is not significantly better than {name}", f"does worse than {name}")
        )
    if not said:
        return f"{answer.chosen.title} has nothing to be compared with"
    return f"Federation {_listed(said)}"


def _outcome(comparison: Comparison, better: str, equal: str, worse: str) -> str:
    if not comparison.tested:
        return f"has too few runs to be tested against {comparison.other.title}"
    if not comparison.significant:
        return equal
    return better if comparison.difference.mean > 0 else worse


def _listed(clauses: list[str]) -> str:
    return " and ".join([", ".join(clauses[:-1]), clauses[-1]] if len(clauses) > 1 else clauses)


def sentences(answer: Answer) -> list[str]:
    """The numbers behind the verdict, a sentence or two for each comparison, in plain text."""
    if answer.chosen is None or answer.score is None:
        return ["No federated method was run in this experiment, so it gives no answer about federation."]
    of = "best" if answer.candidates > 1 else "only"
    said = [f"The {of} federated method, {answer.chosen.title}, reaches an AUC of {answer.score.in_words()}."]
    for comparison in answer.comparisons:
        stronger = {REFERENCE: POOLED, LOCAL: ALONE}.get(comparison.role)
        if stronger is None or answer.against(stronger) is None:
            said.append(f"{_reaches(comparison, unseen=answer.unseen)}: {_difference(comparison)}.")
    return said


def _reaches(comparison: Comparison, *, unseen: bool) -> str:
    title, score = comparison.other.title, f"{comparison.score.mean:.3f}"
    if comparison.role == POOLED:
        return f"{title}, on everybody\u2019s pooled data, reaches {score}"
    if comparison.role == ALONE and unseen:
        return f"The other sites\u2019 own models, averaged, reach {score} with {title}"
    if comparison.role == ALONE:
        return f"An institution alone reaches {score} with {title}"
    if comparison.role == NO_IMAGING:
        return f"Without imaging, {title} reaches {score}"
    return f"{title} reaches {score}"


def _difference(comparison: Comparison) -> str:
    found = comparison.difference
    if not comparison.tested:
        return f"a difference of {signed(found.mean)}, from too few runs to be tested"
    spread = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
    p = f"p\u00a0=\u00a0{comparison.p:.3f}" if comparison.p >= 0.001 else "p\u00a0<\u00a00.001"
    if comparison.significant:
        return f"the federated method {'gains' if found.mean > 0 else 'loses'} {spread} ({p})"
    if found.low > 0 or found.high < 0:
        return f"the federated method\u2019s difference of {spread} does not survive Holm\u2019s correction ({p})"
    return f"the federated method\u2019s difference of {spread} is not significant ({p})"
