"""Settings in words: `k = 5` for the suffix `-k5` of a swept variant (`configuration.planning.sweeps`)."""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from brainfed.cohort.settings.public import PublicSettings
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings, ViewSettings
from brainfed.inpainting.centroids.settings import CentroidSettings
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings

STAGES = (
    GraphSettings,
    FeatureSettings,
    ViewSettings,
    InpaintingSettings,
    FusingSettings,
    FedSageSettings,
    CentroidSettings,
    PublicSettings,
)
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
    keys = {name.replace("_", "-") for name in settings} | _stage_keys()
    either = "|".join(_longest_first({re.escape(word) for word in _words(settings)}))
    value = rf"{NUMBERS}|-(?:{either})(?:-(?:{either}))*"
    part = rf"-({'|'.join(_longest_first(keys))})({value})(?=-|$)"
    found = re.fullmatch(rf"(.*?)((?:{part})+)", suffix)
    if not found:
        return suffix, []
    swept = re.findall(part, found[2])
    repeated = {key for key, _ in swept} | ({PUBLIC} if RATIO in dict(swept) else set())
    rest = "" if found[1].strip("-") in repeated else found[1]
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


def _words(settings: Mapping[str, Any]) -> set[str]:
    """Every word that a swept value can be, as names write it."""
    words = {"on", "off", "none", *(value for value in settings.values() if isinstance(value, str))}
    return {word.replace("_", "-") for word in words} | _stage_words()


@cache
def _stage_keys() -> frozenset[str]:
    """The keys of all shared stages, as names write them."""
    return frozenset(field.name.replace("_", "-") for kind in STAGES for field in fields(kind))


@cache
def _stage_words() -> frozenset[str]:
    """Every word that a key of a shared stage allows, as names write it."""
    words: set[str] = set()
    for kind in STAGES:
        for hint in get_type_hints(kind).values():
            for choice in (hint, *get_args(hint)):
                if get_origin(choice) is Literal:
                    words.update(str(word) for word in get_args(choice))
    return frozenset(word.replace("_", "-") for word in words)


def _longest_first(words: set[str]) -> list[str]:
    return sorted(words, key=lambda word: (-len(word), word))
