"""Citations, BibTeX, and the versions of the libraries that computed the results."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from brainfed.reporting._outline import ExperimentOutline
from brainfed.reporting._rounding import counted
from brainfed.reporting._variants import ShownVariant
from brainfed.runtime.records import Made, record_of

# Citations for a report: data, software and statistics. Those of methods are their families'.


@dataclass(frozen=True)
class Citation:
    """One work; `doi` is empty without one."""

    text: str
    doi: str = ""


ABIDE = (
    Citation(
        "Di Martino A et al. (2014). The autism brain imaging data exchange: towards a large-scale evaluation of the "
        "intrinsic brain architecture in autism. Molecular Psychiatry 19, 659\u2013667.",
        "10.1038/mp.2013.78",
    ),
    Citation(
        "Craddock C et al. (2013). The Neuro Bureau Preprocessing Initiative: open sharing of preprocessed "
        "neuroimaging data and derivatives. Frontiers in Neuroinformatics, conference abstract.",
        "10.3389/conf.fninf.2013.09.00041",
    ),
)
ATLASES = {
    "cc200": Citation(
        "Craddock RC et al. (2012). A whole brain fMRI atlas generated via spatially constrained spectral clustering. "
        "Human Brain Mapping 33, 1914\u20131928.",
        "10.1002/hbm.21333",
    ),
    "basc122": Citation(
        "Bellec P et al. (2010). Multi-level bootstrap analysis of stable clusters in resting-state fMRI. NeuroImage "
        "51, 1126\u20131139.",
        "10.1016/j.neuroimage.2010.02.082",
    ),
    "harvard-oxford": Citation(
        "Desikan RS et al. (2006). An automated labeling system for subdividing the human cerebral cortex on MRI scans "
        "into gyral based regions of interest. NeuroImage 31, 968\u2013980.",
        "10.1016/j.neuroimage.2006.01.021",
    ),
    "aal": Citation(
        "Tzourio-Mazoyer N et al. (2002). Automated anatomical labeling of activations in SPM using a macroscopic "
        "anatomical parcellation of the MNI MRI single-subject brain. NeuroImage 15, 273\u2013289.",
        "10.1006/nimg.2001.0978",
    ),
}
ADNI = Citation(
    "Petersen RC et al. (2010). Alzheimer's Disease Neuroimaging Initiative (ADNI): clinical characterization. "
    "Neurology 74, 201\u2013209.",
    "10.1212/WNL.0b013e3181cb3e25",
)
FREESURFER = Citation("Fischl B (2012). FreeSurfer. NeuroImage 62, 774\u2013781.", "10.1016/j.neuroimage.2012.01.021")
PRIVACY = (
    Citation(
        "Abadi M, Chu A, Goodfellow I, McMahan HB, Mironov I, Talwar K, Zhang L (2016). Deep learning with "
        "differential privacy. ACM Conference on Computer and Communications Security, 308\u2013318.",
        "10.1145/2976749.2978318",
    ),
    Citation(
        "Gopi S, Lee YT, Wutschitz L (2021). Numerical composition of differential privacy. Advances in Neural "
        "Information Processing Systems 34."
    ),
    Citation(
        "Yousefpour A et al. (2021). Opacus: user-friendly differential privacy library in PyTorch. arXiv 2109.12298."
    ),
)
ATTACKS = (
    Citation(
        "Carlini N, Chien S, Nasr M, Song S, Terzis A, Tram\u00e8r F (2022). Membership inference attacks from first "
        "principles. IEEE Symposium on Security and Privacy, 1897\u20131914.",
        "10.1109/SP46214.2022.9833649",
    ),
    Citation(
        "Yeom S, Giacomelli I, Fredrikson M, Jha S (2018). Privacy risk in machine learning: analyzing the connection "
        "to overfitting. IEEE Computer Security Foundations Symposium, 268\u2013282.",
        "10.1109/CSF.2018.00027",
    ),
)
POISON = (
    Citation(
        "Chang H, Shejwalkar V, Shokri R, Houmansadr A (2019). Cronus: robust and heterogeneous collaborative learning "
        "with black-box knowledge transfer. arXiv 1912.11279."
    ),
    Citation(
        "Blanchard P, El Mhamdi EM, Guerraoui R, Stainer J (2017). Machine learning with adversaries: Byzantine "
        "tolerant gradient descent. Advances in Neural Information Processing Systems 30."
    ),
    Citation(
        "Yin D, Chen Y, Ramchandran K, Bartlett P (2018). Byzantine-robust distributed learning: towards optimal "
        "statistical rates. International Conference on Machine Learning, PMLR 80, 5650\u20135659."
    ),
    Citation(
        "Pillutla K, Kakade SM, Harchaoui Z (2022). Robust aggregation for federated learning. IEEE Transactions on "
        "Signal Processing 70, 1142\u20131154.",
        "10.1109/TSP.2022.3153135",
    ),
)
TUDATASET = Citation(
    "Morris C, Kriege NM, Bause F, Kersting K, Mutzel P, Neumann M (2020). TUDataset: a collection of benchmark "
    "datasets for learning with graphs. ICML workshop Graph Representation Learning and Beyond."
)
ALWAYS = (
    Citation(
        "McMahan B, Moore E, Ramage D, Hampson S, Ag\u00fcera y Arcas B (2017). Communication-efficient learning of "
        "deep networks from decentralized data. AISTATS, PMLR 54, 1273\u20131282."
    ),
    Citation(
        "Nadeau C, Bengio Y (2003). Inference for the generalization error. Machine Learning 52, 239\u2013281.",
        "10.1023/A:1024068626366",
    ),
    Citation(
        "Abraham A et al. (2014). Machine learning for neuroimaging with scikit-learn (nilearn). Frontiers in "
        "Neuroinformatics 8, 14.",
        "10.3389/fninf.2014.00014",
    ),
    Citation(
        "M\u00f6lder F et al. (2021). Sustainable data analysis with Snakemake. F1000Research 10, 33.",
        "10.12688/f1000research.29032.2",
    ),
    Citation(
        "Satyanarayan A, Moritz D, Wongsuphasawat K, Heer J (2017). Vega-Lite: a grammar of interactive graphics. IEEE "
        "Transactions on Visualization and Computer Graphics 23, 341\u2013350.",
        "10.1109/TVCG.2016.2599030",
    ),
)


def citations(
    cohorts: Collection[str],
    atlases: Collection[str],
    sources: Collection[str] = (),
    of_methods: Sequence[Citation] = (),
    *,
    private: bool = False,
    audited: bool = False,
    poisoned: bool = False,
) -> list[Citation]:
    """The works to cite for cohorts, parcellations and sources of these names, and those of the methods that were run.

    Args:
        private: whether a method can train with differential privacy.
        audited: whether attacks on membership were run.
        poisoned: whether institutions were poisoned, or a server defends itself.
    """
    data_sets, named = [name.lower() for name in cohorts], {name.lower() for name in atlases}
    return [
        *(ABIDE if any(name.startswith("abide") for name in data_sets) else ()),
        *([TUDATASET] if "tudataset" in sources else ()),
        *([ADNI] if any(name.startswith("adni") for name in data_sets) else ()),
        *(work for name, work in ATLASES.items() if name in named),
        *([FREESURFER] if "freesurfer" in sources else ()),
        *of_methods,
        *(PRIVACY if private else ()),
        *(ATTACKS if audited else ()),
        *(POISON if poisoned else ()),
        *ALWAYS,
    ]


# The cited works as BibTeX, from the sentences of the list of citations.

WORK = re.compile(r"(?P<authors>.+?) \((?P<year>\d{4})\)\. (?P<title>.+?)\. (?P<venue>.+)\.$")
"""`Last F, Last F (2021). Title. Venue 12, 3–4.`"""
ARTICLE = re.compile(r"(?P<journal>[^,]+) (?P<volume>\d+), (?P<pages>\d+(?:\u2013\d+)?)$")
PREPRINT = re.compile(r"arXiv (?P<eprint>[\d.]+)$")
PAGES = re.compile(r"(?P<booktitle>.+), (?P<pages>\d+\u2013\d+)$")
OTHERS = " et al."
SPECIAL = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#"})


def bibtex(works: Sequence[Citation]) -> str:
    """One entry a work, keys such as `bellec2010` and, if one is taken, `bellec2010b`."""
    taken: set[str] = set()
    return "\n\n".join(_entry(work, taken) for work in works)


def _entry(work: Citation, taken: set[str]) -> str:
    parts = WORK.match(work.text)
    if parts is None:
        raise ValueError(f"expected `Authors (year). Title. Venue.`, found {work.text!r}")
    names = [name.rpartition(" ") for name in parts["authors"].removesuffix(OTHERS).split(", ")]
    authors = [f"{last}, {initials}" for last, _, initials in names]
    authors += ["others"] if parts["authors"].endswith(OTHERS) else []
    kind, place = _place(parts["venue"])
    fields = {"author": " and ".join(authors), "title": f"{{{parts['title']}}}", **place, "year": parts["year"]}
    lines = [f"  {name} = {{{value.translate(SPECIAL)}}}," for name, value in fields.items()]
    lines += [f"  doi = {{{work.doi}}},"] if work.doi else []
    return "\n".join([f"@{kind}{{{_key(names[0][0], parts['year'], taken)},", *lines, "}"])


def _place(venue: str) -> tuple[str, dict[str, str]]:
    """Type of an entry, and the fields of what holds it."""
    if (article := ARTICLE.match(venue)) is not None:
        return "article", {**article.groupdict(), "pages": article["pages"].replace("\u2013", "--")}
    if (preprint := PREPRINT.match(venue)) is not None:
        return "misc", {"eprint": preprint["eprint"], "archiveprefix": "arXiv"}
    if (paged := PAGES.match(venue)) is not None:
        return "inproceedings", {"booktitle": paged["booktitle"], "pages": paged["pages"].replace("\u2013", "--")}
    return "inproceedings", {"booktitle": venue}


def _key(first: str, year: str, taken: set[str]) -> str:
    stem = re.sub(r"\W", "", first).lower() + year
    free = next(key for key in (stem, *(f"{stem}{letter}" for letter in "bcdefgh")) if key not in taken)
    taken.add(free)
    return free


# Versions of the libraries that computed the results, from the records next to them.
#
# The environment that writes the page may be another one: results are kept across versions (`library_versions:
# record`).


@dataclass(frozen=True)
class Software:
    """Software of all jobs behind a page, down to the first job that read the data, and the number of jobs.

    Attributes:
        versions: package -> number of jobs by the version that they computed with.
        unrecorded: number of results without a record of versions.
        adopted: number of jobs with results kept on request, whatever made them.
    """

    versions: Mapping[str, Mapping[str, int]]
    jobs: int
    unrecorded: int
    adopted: int

    @property
    def listing(self) -> str:
        """`numpy 2.4.6, torch 2.11.0 (40 jobs) and 2.13.0 (12 jobs)`."""
        said = []
        for name, jobs in self.versions.items():
            several = [f"{version} ({counted(count, 'job')})" for version, count in jobs.items()]
            said.append(f"{name}\u00a0{' and '.join(several if len(jobs) > 1 else jobs)}")
        return ", ".join(said)


def software_of(results: Sequence[str]) -> Software:
    """Software of the results of a page, and of all their inputs; results without a record are counted."""
    behind = _behind(results)
    known = [made for made in behind if made.versions]
    versions: dict[str, Counter[str]] = {}
    for made in known:
        for name, version in made.versions.items():
            versions.setdefault(name, Counter())[version] += 1
    return Software(
        {name: dict(sorted(versions[name].items())) for name in sorted(versions, key=str.casefold)},
        len(behind),
        sum(_record(path) is None for path in results) + len(behind) - len(known),
        sum(made.adopted for made in behind),
    )


def mixed_versions(experiment: ExperimentOutline) -> list[str]:
    """Warnings on mixed versions and on unverified results of a table.

    One for each library with several versions, and one if some results were kept on request.
    """
    used: dict[str, dict[str, list[str]]] = {}
    files = [*experiment.tables.values(), *experiment.figures.values()]
    for variant in experiment.variants:
        files += result_files(variant)
        for made in _behind(result_files(variant)):
            for name, version in made.versions.items():
                titles = used.setdefault(name, {}).setdefault(version, [])
                titles += [] if variant.title in titles else [variant.title]
    said = []
    if adopted := sum(made.adopted for made in _behind(files)):
        said.append(
            f"The results of {counted(adopted, 'job')} behind this table were kept on request (BRAINFED_ADOPT): "
            "nothing shows that this config, code and data made them."
        )
    for name, by_version in sorted(used.items()):
        if len(by_version) > 1:
            parts = "; ".join(f"{version}: {', '.join(titles)}" for version, titles in sorted(by_version.items()))
            said.append(
                f"Several versions of {name} computed the results of this table ({parts}). `library_versions: rerun` "
                "in the config computes them all with the present one."
            )
    return said


def result_files(variant: ShownVariant) -> list[str]:
    """Inputs of a variant's scores: features, generators, fused graphs and predictions."""
    generators = variant.inpainting.get("costs", [])
    return [*variant.feature_files, *generators, *variant.fused, *variant.costs]


def _behind(paths: Sequence[str]) -> list[Made]:
    """The records of the jobs that wrote these files and, one after another, what those read; each once."""
    records: dict[str, Made] = {}
    waiting = list(paths)
    seen = set(waiting)
    while waiting:
        made = _record(waiting.pop())
        if made is not None and (first := next(iter(made.outputs))) not in records:
            records[first] = made
            waiting += [path for path in made.contents if path not in seen]
            seen |= made.contents.keys()
    return list(records.values())


@cache
def _record(path: str) -> Made | None:
    return record_of(Path(path))
