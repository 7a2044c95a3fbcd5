"""The report of a run, or of one site of a study: one HTML file without external resources."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import yaml
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from vl_convert import javascript_bundle

from brainfed.evaluation import FEWEST, METRICS
from brainfed.reporting._citations import Citation, bibtex, citations, software_of
from brainfed.reporting._outline import CohortOutline, ExperimentOutline, ReportOutline, SharedStudy
from brainfed.reporting._papers import Paper, templates_of, works_of
from brainfed.reporting._pictures import read_captions
from brainfed.reporting._rounding import METRIC_TITLES, counted, rounded, short, signed, significant_digits
from brainfed.reporting._sections import CohortSection, ExperimentSection, cohort_section, experiment_section
from brainfed.reporting._variants import ShownVariant, places
from brainfed.reporting.charts import VERSION, config
from brainfed.reporting.panels import GENERIC, Panel, Place
from brainfed.reporting.tables import AuditTable, readable, readable_bytes, readable_seconds
from brainfed.reporting.text import Fact, FirstScreen, in_front, listed, question
from brainfed.runtime import machine, versions, write_text

# The report of one site of a study between sites: the sections of its own subjects, in the words of the study.

OF_ALL_SITES = ("all", "training")
"""References of tangent features that are means over all sites."""


def study_sentences(
    study: SharedStudy, variants: Sequence[ShownVariant], subjects: str, *, unseen: bool = False
) -> list[str]:
    """Which sites trained together, which models they trained, and whose scores these are.

    `subjects` is what the cohort consists of; `unseen`: each site is left out in turn.
    """
    shown = [variant for variant in variants if not variant.is_control]
    together = [variant for variant in shown if variant.topology == "federated"]
    alone = [variant for variant in shown if variant.trains_alone]
    site, sites = study.site, listed(study.sites)
    if unseen:
        said = [
            f"The sites {sites} took part in one study, and each was left out in turn.",
            f"{_models(together)} trained between {listed(study.others)} to be tested at {site}, without any "
            f"{subjects} of it.",
        ]
    elif together:
        said = [
            f"The sites {sites} trained together.",
            f"{_models(together)} trained between these sites, on the {subjects} of all of them.",
        ]
    else:
        said = [f"The sites {sites} take part in one study, but no method here was trained between them."]
    if alone and not unseen:
        said.append(f"{_models(alone)} trained on the {subjects} of {site} alone.")
        tangent = [variant for variant in alone if variant.setting("features.tangent")]
        if any(variant.setting("features.reference") in OF_ALL_SITES for variant in tangent):
            said.append("Tangent features start from a mean over all sites, also those of local methods.")
    if study.sets and not unseen:
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
    return f"The model{'s' if many else ''} of {listed(titles)} {'were' if many else 'was'}"


def titled(outline: ReportOutline) -> ReportOutline:
    """The outline with the site and the others in its heading."""
    study = outline.study
    if study is None:
        return outline
    return replace(outline, title=f"{outline.title}: {study.site}, in a study with {listed(study.others)}")


def at_a_site(section: ExperimentSection, cohort: CohortOutline, study: SharedStudy | None) -> ExperimentSection:
    """The section with the sentences on the study; as it is where all institutions are in one place."""
    if study is None:
        return section
    unseen = section.outline.leaves_sites_out
    said = study_sentences(study, section.outline.variants, cohort.words.subjects, unseen=unseen)
    _, _, design = section.setting.partition("; ")
    setting = f"1 institution of a study between {len(study.sites)} sites; {design}"
    if section.first is None:
        return replace(section, setting=setting, sentences=[*said, *section.sentences])
    first = FirstScreen(
        question(cohort.words, cohort.kind, len(study.sites), unseen=unseen),
        f"{section.first.answer} These are scores at {study.site}.",
        (Fact("Which sites", " ".join(said)), *section.first.facts),
    )
    return replace(section, setting=setting, first=first)


# A paragraph for the methods section of an article: cohort, splits, models, statistics, software.

FEATURES = {
    "connectivity": "region series ({atlas}{regions} regions)",
    "morphometry": "FreeSurfer measures ({regions})",
    "graphs": "graphs",
}
"""Kind of a cohort -> what its methods read."""


def methods_paragraph(
    cohort: CohortSection,
    experiment: ExperimentSection,
    seed: int,
    versions: Mapping[str, str],
    study: SharedStudy | None = None,
) -> str:
    """Plain text to copy, of one experiment; `study` is None where all institutions are in one place."""
    outline, means, between = experiment.outline, "institutions and ", list[str]()
    if study is not None:
        means = ""
        between = study_sentences(study, outline.variants, cohort.subjects, unseen=outline.leaves_sites_out)
    compared = list(dict.fromkeys(variant.title for variant in outline.variants if not variant.is_control))
    software = ["brainfed", *(name for name in versions if name != "brainfed")]
    return " ".join(
        [
            _cohort(cohort),
            *between,
            f"Design: {experiment.setting}.",
            experiment.protocol,
            f"Compared were {listed(compared)}.",
            f"Scores are means over {means}{experiment.runs} runs, a run being {experiment.run}; intervals "
            "and tests are corrected for overlapping training sets (Nadeau and Bengio 2003), p values also for "
            "multiple comparisons (Holm 1979).",
            f"All random streams derive from the seed {seed}. Software: "
            f"{', '.join(f'{name} {versions[name]}' for name in software if name in versions)}.",
        ]
    )


def _cohort(cohort: CohortSection) -> str:
    left = cohort.attrition.left_out
    reasons = left[0][0] if len(left) == 1 else listed([f"{count} {reason}" for reason, count in left])
    total = sum(count for _, count in left)
    verb = "was" if total == 1 else "were"
    listing = f"{cohort.attrition.listed} {cohort.subjects} in the table"
    excluded = f" Of {listing}, {total} {verb} left out ({reasons})." if left else ""
    read = FEATURES[cohort.kind].format(
        atlas="" if cohort.atlas == "atlas" else f"{cohort.atlas}, ", regions=cohort.connectivity.get("regions", "")
    )
    return (
        f"We analysed {read} of {cohort.analysed} {cohort.subjects} ({cohort.classes}) from "
        f"{counted(cohort.sites, cohort.site)} of the {cohort.title}.{excluded}"
    )


# The page.

DIFFERENCES = {"connectivity": "connectivity", "morphometry": "measures"}
"""Kind of features -> its words in the heading of the section on group differences."""


@dataclass(frozen=True)
class Chapter:
    """A cohort with its experiments."""

    cohort: CohortSection
    experiments: list[ExperimentSection]


def write_report(
    outline: ReportOutline, captions: Sequence[str], results: Sequence[str], path: str, papers: Sequence[Paper]
) -> None:
    """Render the outline's artefacts into one page.

    Args:
        captions: the caption files, `NAME.rst`.
        results: all results that the page shows.
        papers: what the families of methods bring.
    """
    write_text(path, render(outline, captions, papers, results))


def render(
    outline: ReportOutline, captions: Sequence[str], papers: Sequence[Paper], results: Sequence[str] = ()
) -> str:
    """The page as text; arguments as of `write_report`."""
    panels = [*GENERIC, *(panel for paper in papers for panel in paper.panels)]
    chapters = [_chapter(cohort, outline, read_captions(captions, cohort.words), panels) for cohort in outline.cohorts]
    shown = [panel for chapter in chapters for experiment in chapter.experiments for panel in experiment.panels]
    audits = [panel.content for panel in shown if isinstance(panel.content, AuditTable)]
    # Each of the first experiment to which it applies.
    private = {panel.panel.name: panel for panel in reversed(shown) if panel.panel.place == Place.PRIVACY}
    cited = _cited(outline, papers, audited=bool(audits))
    return environment(tuple(papers)).get_template("report.html.j2").render(
        outline=titled(outline),
        chapters=chapters,
        metrics=[METRIC_TITLES[metric] for metric in METRICS],
        metric_titles=METRIC_TITLES,
        places=places,
        config=yaml.safe_dump(_plain(outline.config), sort_keys=False, allow_unicode=True),
        fewest=FEWEST,
        audited=bool(audits),
        followed=any(chapter.cohort.ways.subjects for chapter in chapters),
        in_front=in_front,
        guaranteed=any(audit.private for audit in audits),
        privacy_notes=list(private.values())[::-1],
        differences=_differences(chapters),
        versions=versions(),
        software=software_of(results),
        vega=vega(),
        chart_styles=chart_styles(),
        machine=machine(),
        methods=[
            methods_paragraph(chapter.cohort, experiment, outline.seed, versions(), outline.study)
            for chapter in chapters for experiment in chapter.experiments[:1]
        ],
        citations=cited,
        bibtex=bibtex(cited),
    )  # fmt: skip


@lru_cache(maxsize=2)
def environment(papers: tuple[Paper, ...] = ()) -> Environment:
    """Templates of pages, also of those that the families of methods bring, and their filters."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader("brainfed.reporting"), templates_of(papers)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        bytes=readable_bytes,
        count=readable,
        seconds=readable_seconds,
        rounded=rounded,
        short=short,
        signed=signed,
        significant=significant_digits,
    )
    return made


def _chapter(
    cohort: CohortOutline, outline: ReportOutline, captions: Mapping[str, str], panels: Sequence[Panel]
) -> Chapter:
    study, site = outline.study, outline.study.site if outline.study else ""
    experiments = [
        at_a_site(experiment_section(cohort, experiment, captions, panels, site), cohort, study)
        for experiment in _each_figure_once(cohort.experiments)
    ]
    return Chapter(cohort_section(cohort, captions, show_subjects=outline.show_subjects), experiments)


def _cited(outline: ReportOutline, papers: Sequence[Paper], *, audited: bool) -> list[Citation]:
    """The works to cite for the data and variants of a page."""
    cohorts = outline.cohorts
    variants = [variant for cohort in cohorts for experiment in cohort.experiments for variant in experiment.variants]
    return citations(
        [cohort.name for cohort in cohorts],
        [cohort.atlas for cohort in cohorts],
        {cohort.source for cohort in cohorts},
        works_of(papers, {variant.method for variant in variants}),
        private=any(variant.setting("privacy") is not None for variant in variants),
        audited=audited,
        poisoned=any(variant.is_poisoned or variant.is_defended for variant in variants),
    )


def chart_styles() -> Markup:
    """What charts look like on a light and on a dark page, as JSON."""
    return Markup(json.dumps({"light": config(), "dark": config(dark=True)}))


@cache
def vega() -> Markup:
    """The script that draws charts anew."""
    return Markup(javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION))


def _differences(chapters: Sequence[Chapter]) -> str:
    """Heading of the section that compares patients and controls; empty where all cohorts are of graphs."""
    kinds = {chapter.cohort.kind for chapter in chapters} - {"graphs"}
    titles = [title for kind, title in DIFFERENCES.items() if kind in kinds]
    return " and ".join(titles).capitalize()


def _each_figure_once(experiments: Sequence[ExperimentOutline]) -> list[ExperimentOutline]:
    """Keep a group's figure with its first experiment."""
    seen: set[str] = set()
    kept = []
    for experiment in experiments:
        again = bool(experiment.group) and experiment.group in seen
        seen.add(experiment.group)
        figures = {name: path for name, path in experiment.figures.items() if name != experiment.figure}
        kept.append(replace(experiment, figures=figures) if again else experiment)
    return kept


def _plain(value: object) -> object:
    """Tuples as lists, for YAML; absolute paths from the working directory, or only their names outside of it."""
    if isinstance(value, str | Path) and Path(value).is_absolute():
        path, here = Path(value), Path.cwd()
        return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
