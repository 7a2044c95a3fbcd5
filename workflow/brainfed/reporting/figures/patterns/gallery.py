"""Tables and picture of the patterns of linear models."""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.patterns import planted_connections, read_patterns
from brainfed.evaluation.strongest_patterns import COLUMNS, PLANTED_COLUMNS, no_rows, planted_table, strongest_table
from brainfed.evaluation.view_importance import COLUMNS as VIEW_COLUMNS
from brainfed.evaluation.view_importance import read_parts, view_importance
from brainfed.reporting.figures.connectivity.strongest import region_places
from brainfed.reporting.figures.patterns.connectome import patterns_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import write_tsv


def draw_patterns(
    variants: Sequence[ShownVariant],
    files: Sequence[str],
    predictions: Sequence[str],
    outputs: Mapping[str, str],
    *,
    atlas: tuple[str, str | None] | None,
    truth: str | None,
    seed: int,
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the tables called table, planted and views, and the SVG called patterns.

    Args:
        variants: linear models of the experiment.
        files: their patterns, every repeat of the first variant first.
        predictions: their predictions, in the same order.
        outputs: name -> path.
        atlas: parcellation image and region table (None: named by number), where the regions have a place.
        truth: planted connections of a simulated cohort.
        seed: of the permutations of views.
        words: names of the classes.
    """
    repeats = len(files) // len(variants)
    places = region_places(*atlas) if atlas is not None else {}
    planted = planted_connections(truth, words.target) if truth else {}
    strongest, scored, views = [no_rows(COLUMNS)], [no_rows(PLANTED_COLUMNS)], [no_rows(VIEW_COLUMNS)]
    for number, variant in enumerate(variants):
        own = slice(number * repeats, (number + 1) * repeats)
        patterns = read_patterns(files[own])
        if patterns is None:
            continue
        strongest.append(strongest_table(variant.name, patterns, places))
        scored.append(planted_table(variant.name, patterns, planted))
        parts = [read_parts(*pair) for pair in zip(files[own], predictions[own], strict=True)]
        views += [view_importance(variant.name, held, seed)] if (held := [one for one in parts if one]) else []
    table = _joined(strongest)
    write_tsv(outputs["table"], table, float_format="%.6g")
    write_tsv(outputs["planted"], _joined(scored), float_format="%.6g")
    write_tsv(outputs["views"], _joined(views), float_format="%.6g")
    with drawing():
        save_svg(patterns_figure(table, variants, words), outputs["patterns"])


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    held = [table for table in tables if len(table)]
    return pd.concat(held, ignore_index=True) if held else tables[0]
