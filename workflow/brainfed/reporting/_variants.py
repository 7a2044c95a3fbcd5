"""Settings in words: `k = 5` for the suffix `-k5` of a swept variant (`configuration.planning._experiments`)."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.settings import PublicSettings
from brainfed.graphs import GraphSettings
from brainfed.imaging import FeatureSettings, ViewSettings
from brainfed.inpainting import CentroidSettings, FedSageSettings, FusingSettings, InpaintingSettings
from brainfed.runtime import flat_settings

Groups = Mapping[str, tuple[str, str]]
"""Key -> its words and colour."""

STAGES = (
    GraphSettings, FeatureSettings, ViewSettings, InpaintingSettings, FusingSettings, FedSageSettings,
    CentroidSettings, PublicSettings,
)  # fmt: skip
PUBLIC, RATIO = "public", "ratio"
"""The share of public subjects: the stage and its key."""
GREEK = {"alpha": "\u03b1", "beta": "\u03b2"}
ABBREVIATIONS = {
    "fl-g-d": "FL-G-D",
    "nofl-g-d": "NoFL-G-D",
    "fl-d": "FL-D",
    "fl-g": "FL-G",
    "fig2": "Fig. 2",
    "bce": "BCE",
    "bfs": "BFS",
    "combat": "ComBat",
    "gan": "GAN",
    "gcna": "GCNA",
    "knn": "kNN",
    "ofom": "OFOM",
    "paf": "PAF",
    "pca": "PCA",
    "rfe": "RFE",
    "sd": "SD",
    "self10": "self-weight 10",
    "parisot": "as Parisot et al.",
    "wd": "WD",
}
"""Words for ends of names and for words in them; whole ends first."""
NUMBERS = r"-?\d[\d.x]*(?:e[+-]?\d+)?"


def without_sweep(suffix: str, settings: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Split the end of a variant's name.

    Args:
        suffix: part after the method's name, with its first hyphen: `-wide-k5`.
        settings: the method's own settings.

    Returns:
        The part outside a sweep (`-wide`; empty if it only repeats a swept key), and the swept settings (`k = 5`).
    """
    keys = _as_in_names(settings) | _stage_keys()
    strings = (value for value in settings.values() if isinstance(value, str))
    words = _as_in_names(("on", "off", "none", *strings)) | _stage_words()
    either = "|".join(_longest_first({re.escape(word) for word in words}))
    value = rf"{NUMBERS}|-(?:{either})(?:-(?:{either}))*"
    part = rf"-({'|'.join(_longest_first(keys))})({value})(?=-|$)"
    match = re.fullmatch(rf"(.*?)((?:{part})+)", suffix)
    if not match:
        return suffix, []
    swept = re.findall(part, match[2])
    repeated = {key for key, _ in swept} | ({PUBLIC} if RATIO in dict(swept) else set())
    rest = "" if match[1].strip("-") in repeated else match[1]
    return rest, [setting_in_words(key, shown) for key, shown in swept]


def setting_in_words(key: str, value: object) -> str:
    """`age gap = 2` for the key `age_gap`, `hidden = 8 × 4` for the label `8x4`."""
    if isinstance(value, list | tuple):
        shown = ", ".join(map(str, value)) or "none"
    elif isinstance(value, bool):
        shown = "on" if value else "off"
    elif isinstance(value, str) and re.fullmatch(NUMBERS, value):
        shown = value.replace("x", " \u00d7 ")
    else:
        shown = str(value).strip("-").replace("-", " ").replace("_", " ")
    if key == RATIO and shown:
        return f"{100 * float(shown):g} % public"
    name = key.replace("_", " ").replace("-", " ")
    return f"{GREEK.get(name, name)} = {shown}"


def label_in_words(label: str) -> str:
    """`no BFS` for the end `-no-bfs` of a variant's name."""
    label = label.strip("-")
    return ABBREVIATIONS.get(label) or " ".join(ABBREVIATIONS.get(word, word) for word in label.split("-"))


@cache
def _stage_keys() -> frozenset[str]:
    """The keys of all shared stages."""
    return _as_in_names(field.name for kind in STAGES for field in fields(kind))


@cache
def _stage_words() -> frozenset[str]:
    """Every word that a key of a shared stage allows."""
    hints = [hint for kind in STAGES for hint in get_type_hints(kind).values()]
    choices = [choice for hint in hints for choice in (hint, *get_args(hint)) if get_origin(choice) is Literal]
    return _as_in_names(str(word) for choice in choices for word in get_args(choice))


def _as_in_names(words: Iterable[str]) -> frozenset[str]:
    """Keys or words as the names of variants write them."""
    return frozenset(word.replace("_", "-") for word in words)


def _longest_first(words: Set[str]) -> list[str]:
    return sorted(words, key=lambda word: (-len(word), word))


# A variant on the page: its title, and one colour for each place of training.

FAMILIES = ("baseline", "linear", "graph", "federated")
"""Families of methods in the order of tables and figures."""
PLACES: Groups = {
    "baseline": ("no {unread}", "#6b7280"),
    "local": ("alone", "#007a5a"),
    "central": ("pooled data", "#0072b2"),
    "public": ("public subjects", "#6b7280"),
    "federated": ("federated", "#bf5300"),
}
"""Place where a method trains -> its words and colour, in the order of legends."""
TITLES = {
    "fedprox-gin": "FedProx GIN",
    "fedavg-dp": "FedAvg + DP",
    "fedavg-no-dp": "FedAvg, no DP",
    "fedet-literal": "Fed-ET",
    "fedgnn-dp": "FedGNN + DP",
    "fedgnn-no-dp": "FedGNN, no DP",
    "fglbc-no-dp": "FGLBC, no DP",
    "logistic-fedavg": "Logistic, FedAvg",
    "tangent-local": "Tangent space (local)",
    "tangent-central": "Tangent space (central)",
}
"""Shipped variant that is not called after its method -> its title, also of variants whose names begin with it."""
SHARE = "attacked = "
"""Start of the words of a swept share of poisoned institutions."""
NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
PLUS = "-plus"
"""End of a name that a title writes as a plus sign."""


@dataclass(frozen=True)
class Counterpart:
    """The same model without federation.

    Attributes:
        name: of a variant of the experiment; empty: none.
        differs: other differences, a sentence each.
        missing: reason for a missing counterpart, or the variant to add to the config.
        other_model: name of its model if it is not the method's own.
    """

    name: str = ""
    differs: Sequence[str] = ()
    missing: str = ""
    other_model: str = ""


@dataclass(frozen=True)
class ShownVariant:
    """One row of the tables and figures.

    Attributes:
        name: as in the config.
        method: the method that it varies.
        family: `baseline`, `linear`, `graph` or `federated`.
        settings: the method's resolved settings.
        costs, timings, histories, privacy: its artefact of that name of each repeat.
        shipped: all settings of the method as shipped, those of its stages as `graph.k`.
        stages: settings of the shared stages that it reads: `features`, `graph`, `inpainting`, `fusing`.
        fused: graphs with generated nodes that it is trained on, of all repeats.
        feature_files: the imaging features behind them.
        inpainting: `histories`, `costs` and `timings` of the generators that it reads, one a repeat (or repeat and
            fold).
        preparation: what of `features`, `graph` and `fusing` was fitted or built for it -> a `timing.json` a repeat (or
            repeat and fold).
        fidelity: what is known of its generated nodes against the true ones, a file a repeat.
        topology: where it trains: `local`, `federated` or `central`.
        counterparts: of a federated variant, `alone` and `pooled` -> the same model without federation.
        clusters: whether its server parts the institutions into clusters.
        beside: variants that it is always compared with on the page, as its family's paper declares.
    """

    name: str
    method: str
    method_title: str
    family: str
    settings: dict[str, Any] = field(default_factory=dict)
    costs: tuple[str, ...] = ()
    timings: tuple[str, ...] = ()
    shipped: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    histories: tuple[str, ...] = ()
    privacy: tuple[str, ...] = ()
    fused: tuple[str, ...] = ()
    feature_files: tuple[str, ...] = ()
    inpainting: dict[str, list[str]] = field(default_factory=dict)
    preparation: dict[str, list[str]] = field(default_factory=dict)
    fidelity: tuple[str, ...] = ()
    topology: str = ""
    counterparts: dict[str, Counterpart] = field(default_factory=dict)
    clusters: bool = False
    beside: tuple[str, ...] = ()

    @cached_property
    def title(self) -> str:
        """`FedGCN (no noise)` for the variant `fedgcn-no-noise` of the method `fedgcn`, `FedGCN (k = 5)` in a sweep."""
        title, own, swept = self._parted
        oracle = ["an oracle"] if self.setting("fusing.nodes") == "true" else []
        poisoned = ["poisoned"] if self.is_poisoned and not any(word.startswith(SHARE) for word in swept) else []
        return _with_words(title, [own, *swept, *oracle, *poisoned])

    @property
    def unswept_title(self) -> str:
        """The title without the settings that a sweep gave it."""
        title, own, _ = self._parted
        return _with_words(title, [own])

    @property
    def label(self) -> str:
        """What its title says beside the method's: `no noise`, `k = 5`; empty where that is nothing."""
        _, own, swept = self._parted
        return ", ".join(filter(None, [own, *swept]))

    @cached_property
    def _parted(self) -> tuple[str, str, list[str]]:
        """The title of the method (or the name of a variant that is not called after it), its words, swept settings."""
        given, title = self._after_method
        rest, swept = without_sweep(given, self.settings)
        own = label_in_words(rest) if title else ""
        return title or rest.removeprefix("-") or self.method_title, own, swept

    @property
    def _after_method(self) -> tuple[str, str]:
        """The end of the name, and the title that stands for its start: `-no-noise` and `FedGCN`; `` and `GCFL+`.

        The whole name and no title if it is not called after its method.
        """
        shipped = max((name for name in TITLES if f"{self.name}-".startswith(f"{name}-")), key=len, default="")
        if shipped:
            return self.name.removeprefix(shipped), TITLES[shipped]
        if self.name != self.method and not self.name.startswith(f"{self.method}-"):
            return f"-{self.name}", ""
        rest = self.name.removeprefix(self.method)
        if rest == PLUS or rest.startswith(f"{PLUS}-"):
            return rest.removeprefix(PLUS), f"{self.method_title}+"
        return rest, self.method_title

    def setting(self, key: str) -> Any:
        """A resolved setting: its own (`rounds`) or a stage's (`graph.k`); None where it has none of that name."""
        stage, _, name = key.rpartition(".")
        return (self.stages.get(stage, {}) if stage else self.settings).get(name)

    @property
    def place(self) -> str:
        """Where it trains: a key of `PLACES`."""
        if self.family == "baseline":
            return "baseline"
        if self.topology == "central" and not self.pools:
            return "public"
        return self.topology or ("federated" if self.family == "federated" else "central")

    @property
    def colour(self) -> str:
        """The colour of the place where it trains."""
        return PLACES[self.place][1]

    @property
    def is_control(self) -> bool:
        """Whether something else stands in place of generated nodes: a measure for FedNI, no method to be proposed."""
        return self.setting("fusing.nodes") not in (None, "generated")

    @property
    def is_poisoned(self) -> bool:
        """Whether an attack has poisoned some of the institutions: a measure for its method, as a control is."""
        return self.setting("attack") not in (None, "none") and self.setting("attacked") > 0

    @property
    def is_measure(self) -> bool:
        """Whether it is a control or poisoned, which no answer proposes."""
        return self.is_control or self.is_poisoned

    @property
    def is_defended(self) -> bool:
        """Whether the server takes something else than the mean of what it receives."""
        return self.setting("defence") not in (None, "none")

    @property
    def trains_alone(self) -> bool:
        """Whether every institution has a model of its own that nobody else touched."""
        return self.topology == "local"

    @property
    def pools(self) -> bool:
        """Whether it trains on the data of all institutions in one place, not on public subjects alone."""
        return self.topology == "central" and self.setting("public.ratio") is None

    def counterpart(self, side: str) -> Counterpart:
        """Its counterpart `alone` or on `pooled` data; one without a name where it has none."""
        return self.counterparts.get(side, Counterpart())

    @property
    def epochs_a_round(self) -> int:
        """Local epochs between two points of its curves; 0: it has no curves."""
        if "rounds" in self.settings:
            return int(self.settings.get("local_epochs", 1))
        return int(self.settings.get("curve_every", 0))


def read_variant(values: Mapping[str, Any], beside: Mapping[str, Sequence[str]] = NOTHING) -> ShownVariant:
    """A variant from its fields as builtins; `beside`: variant -> the variants that it is always compared with."""
    lists = ("costs", "timings", "histories", "privacy", "fused", "feature_files", "fidelity")
    counterparts = {side: Counterpart(**own) for side, own in values.get("counterparts", {}).items()}
    paths = {name: tuple(values[name]) for name in lists if name in values}
    known = {"counterparts": counterparts, "beside": tuple(beside.get(values["name"], ()))}
    return ShownVariant(**{**values, **paths, **known})


def changed_settings(variant: ShownVariant) -> dict[str, Any]:
    """Every resolved setting of a variant that is not as shipped -> its value; None for one that it lacks."""
    usual, own = variant.shipped, flat_settings(variant.settings, variant.stages)
    return {
        key: own.get(key)
        for key in usual.keys() | own.keys()
        if (key in own) != (key in usual) or own[key] != usual[key]
    }


def _with_words(title: str, words: Sequence[str]) -> str:
    details = ", ".join(filter(None, words))
    return f"{title} ({details})" if details else title


def by_family(variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants in the order of the families, inside a family in the order given."""
    return sorted(variants, key=lambda variant: FAMILIES.index(variant.family))


def places(words: ClassWords = DIAGNOSIS_WORDS, *, unseen: bool = False) -> Groups:
    """Place where a method trains -> its words and colour; `unseen`: a site is tested by models that never saw it."""
    groups = {name: (title.format(unread=words.unread), colour) for name, (title, colour) in PLACES.items()}
    return groups | ({"local": ("other sites\u2019 models, averaged", PLACES["local"][1])} if unseen else {})
