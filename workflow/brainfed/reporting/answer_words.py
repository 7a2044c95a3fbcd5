"""The answer in words: one line, and the numbers behind it.

The sentences say no more than the tests: where an interval holds zero, they say that the difference is
not significant, and where there are too few runs, that nothing was tested.
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
    if blind is not None and not (blind.significant and blind.difference.mean > 0):
        name = "guessing without imaging"
        said.append(_outcome(blind, "", f"is not significantly better than {name}", f"does worse than {name}"))
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
    owners = {POOLED: REFERENCE, ALONE: LOCAL}
    for role in (POOLED, ALONE, NO_IMAGING):
        comparison = answer.against(role)
        if comparison is not None:
            besides = _besides(answer.against(owners[role])) if role in owners else ""
            said.append(f"{_reaches(comparison, unseen=answer.unseen)}: {_difference(comparison)}.{besides}")
    for role, main in ((REFERENCE, POOLED), (LOCAL, ALONE)):
        comparison = answer.against(role)
        if comparison is not None and answer.against(main) is None:
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


def _besides(configured: Comparison | None) -> str:
    """The score of the config's own choice, where another one of its kind is stronger."""
    if configured is None:
        return ""
    return f" {configured.other.title}, {_CHOSEN_FOR[configured.role]}, reaches {configured.score.mean:.3f}."


_CHOSEN_FOR = {REFERENCE: "the reference of the tests below", LOCAL: "the local model of the gains below"}


def _difference(comparison: Comparison) -> str:
    found = comparison.difference
    if not comparison.tested:
        return f"a difference of {signed(found.mean)}, from too few runs to be tested"
    spread = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
    p = f"p = {comparison.p:.3f}" if comparison.p >= 0.001 else "p < 0.001"
    if not comparison.significant:
        return f"the federated method\u2019s difference of {spread} is not significant ({p})"
    return f"the federated method {'gains' if found.mean > 0 else 'loses'} {spread} ({p})"
