"""The report of one site of a study between sites: the sections of its own subjects, in the words of the study."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from brainfed.reporting._outline import CohortOutline, ReportOutline, SharedStudy
from brainfed.reporting._sections import ExperimentSection
from brainfed.reporting._variants import ShownVariant
from brainfed.reporting.text import Fact, FirstScreen, listed, question

# Sentences on a study between sites, in the report of one of them.

OF_ALL_SITES = ("all", "training")
"""References of tangent features that are means over all sites."""


def study_sentences(
    study: SharedStudy, variants: Sequence[ShownVariant], subjects: str, *, unseen: bool = False
) -> list[str]:
    """Which sites trained together, which models they trained, and whose scores these are.

    Args:
        study: the study, and its site.
        variants: of an experiment.
        subjects: what the cohort consists of.
        unseen: whether each site is left out in turn.
    """
    shown = [variant for variant in variants if not variant.is_control]
    together = [variant for variant in shown if variant.topology == "federated"]
    alone = [variant for variant in shown if variant.trains_alone]
    site, sites = study.site, listed(study.sites, "and")
    if unseen:
        return [
            f"The sites {sites} took part in one study, and each was left out in turn.",
            f"{_models(together)} trained between {listed(study.others, 'and')} to be tested at {site}, without any "
            f"{subjects} of it.",
            f"All scores here are those of {subjects} of {site}.",
        ]
    if together:
        said = [
            f"The sites {sites} trained together.",
            f"{_models(together)} trained between these sites, on the {subjects} of all of them.",
        ]
    else:
        said = [f"The sites {sites} take part in one study, but no method here was trained between them."]
    if alone:
        said.append(f"{_models(alone)} trained on the {subjects} of {site} alone.")
    if any(_has_shared_features(variant) for variant in alone):
        said.append("Tangent features start from a mean over all sites, also those of local methods.")
    if study.sets:
        said.append(
            f"Exact numbers of {study.sets} different sets of {subjects} of {site} were added up with those of the "
            "others. A sum is not anonymous: with as many sets as subjects of a class at all sites together, the "
            "coordinator can compute the features of each."
        )
    return [*said, f"All scores here are those of {subjects} of {site}."]


def _models(variants: Iterable[ShownVariant]) -> str:
    """`The models of FedGCN and FedTangent were`; `The model of FedGCN was`."""
    titles = list(dict.fromkeys(variant.title for variant in variants))
    many = len(titles) > 1
    return f"The model{'s' if many else ''} of {listed(titles, 'and')} {'were' if many else 'was'}"


def _has_shared_features(variant: ShownVariant) -> bool:
    return bool(variant.setting("features.tangent")) and variant.setting("features.reference") in OF_ALL_SITES


# The report of one site of a study between sites: the sections of its own subjects, in the words of the study.


def titled(outline: ReportOutline) -> ReportOutline:
    """The outline with the site and the others in its heading."""
    study = outline.study
    if study is None:
        return outline
    return replace(outline, title=f"{outline.title}: {study.site}, in a study with {listed(study.others, 'and')}")


def at_a_site(section: ExperimentSection, cohort: CohortOutline, study: SharedStudy | None) -> ExperimentSection:
    """The section with the sentences on the study; as it is where all institutions are in one place."""
    if study is None:
        return section
    unseen = section.outline.split["validation"] == "leave_one_site_out"
    said = study_sentences(study, section.outline.variants, cohort.words.subjects, unseen=unseen)
    _, _, design = section.setting.partition("; ")
    setting = f"1 institution of a study between {len(study.sites)} sites; {design}"
    if section.first is None:
        return replace(section, setting=setting, sentences=[*said, *section.sentences])
    return replace(section, setting=setting, first=_first(section.first, cohort, study, said, unseen))


def _first(first: FirstScreen, cohort: CohortOutline, study: SharedStudy, said: list[str], unseen: bool) -> FirstScreen:
    return FirstScreen(
        question(cohort.words, cohort.kind, len(study.sites), unseen=unseen),
        f"{first.answer} These are scores at {study.site}.",
        (Fact("Which sites", " ".join(said)), *first.facts),
    )
