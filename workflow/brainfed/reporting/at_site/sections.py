"""The report of one site of a study between sites: the sections of its own subjects, in the words of the study."""

from dataclasses import replace

from brainfed.reporting.at_site.sentences import study_sentences
from brainfed.reporting.experiment_section import ExperimentSection
from brainfed.reporting.outline import CohortOutline, ReportOutline, SharedStudy
from brainfed.reporting.text.answer import listed
from brainfed.reporting.text.first_screen import Fact, FirstScreen, question


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
