"""Kinds of FreeSurfer measures by column name.

FreeSurfer's own names are `Left-Hippocampus`, `lh_cuneus_thickness`. ADNI's are `ST44CV`, `ST44SA`, `ST44TA`, `ST29SV`;
those of the ENIGMA protocols `L_cuneus_thickavg`, `R_cuneus_surfavg`, `Lhippo`, `RThickness`.
"""

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

from brainfed.cohort.settings.freesurfer import FreeSurferSettings

Kind = Literal["volume", "thickness", "area", "other", "unknown"]
"""`other`: curvatures, ratios, counts, standard deviations; `unknown`: the name does not tell."""

INTRACRANIAL = ("EstimatedTotalIntraCranialVol", "eTIV", "IntraCranialVol", "ICV", "ST10CV")
"""Names of the estimated intracranial volume in FreeSurfer's versions, merged tables and ADNI's tables."""

WHOLE_BRAIN = re.compile(
    r"(Estimated(Total)?)?IntraCranialVol|eTIV|ICV|ST10CV|(lh|rh)?(Cortex|CorticalWhiteMatter|CerebralWhiteMatter)Vol"
    r"|SubCortGrayVol|TotalGrayVol|SupraTentorialVol\w*|BrainSegVol\w*|MaskVol|[lr]h_(MeanThickness|WhiteSurfArea)_\w+|[LR](Thickness|SurfArea)"
)
SUBCORTICAL = re.compile(
    r"(Left|Right)-(Lateral-Ventricle|Inf-Lat-Vent|(Cerebellum|Cerebral)-(White-Matter|Cortex)|Thalamus(-Proper)?\*?"
    r"|Caudate|Putamen|Pallidum|Hippocampus|Amygdala|Accumbens-area|VentralDC|vessel|choroid-plexus"
    r"|UnsegmentedWhiteMatter|(non-)?WM-hypointensities)"
    r"|(3rd|4th|5th)-Ventricle|Brain-Stem|CSF|(non-)?WM-hypointensities|Optic-Chiasm"
    r"|CC_((Mid_)?(Posterior|Anterior)|Central)|(wm|ctx)-[lr]h-[\w.-]+|VentricleChoroidVol"
)
"""Names of asegstats2table, of aseg.stats and wmparc.stats."""
ADNI = re.compile(r"ST\d+(?P<kind>CV|SV|HS|SA|TA|TS)")
ADNI_KINDS: dict[str, Kind] = {
    "CV": "volume", "SV": "volume", "HS": "volume", "SA": "area", "TA": "thickness", "TS": "other",
}  # fmt: skip
CORTICAL = re.compile(r"[lr]h_.+_(?P<kind>[A-Za-z]+)")
CORTICAL_KINDS: dict[str, Kind] = {
    "volume": "volume", "thickness": "thickness", "area": "area",
    **dict.fromkeys(("thicknessstd", "meancurv", "gauscurv", "foldind", "curvind", "mean", "std"), "other"),
}  # fmt: skip
ENIGMA = re.compile(r"[LR](_.+_|(?=Thickness|SurfArea))(?P<kind>thickavg|surfavg|Thickness|SurfArea)")
ENIGMA_KINDS: dict[str, Kind] = {
    "thickavg": "thickness", "Thickness": "thickness", "surfavg": "area", "SurfArea": "area",
}  # fmt: skip
ENIGMA_VOLUME = re.compile(r"[LR](LatVent|thal|caud|put|pal|hippo|amyg|accumb)")
OTHER = re.compile(r".*(_mean|_std|-to-eTIV|SurfaceHoles)")

RENAMED = {f"{side}-Thalamus-Proper{star}": f"{side}-Thalamus" for side in ("Left", "Right") for star in ("", "*")}
"""Structures that FreeSurfer 7 names otherwise than FreeSurfer 6, by their former names."""


def measure_of(column: str) -> Kind:
    """Kind of a measure by its name."""
    if found := ADNI.fullmatch(column):
        return ADNI_KINDS[found["kind"]]
    if found := CORTICAL.fullmatch(column):
        return CORTICAL_KINDS.get(found["kind"], "unknown")
    if found := ENIGMA.fullmatch(column):
        return ENIGMA_KINDS[found["kind"]]
    if OTHER.fullmatch(column):
        return "other"
    volumes = (SUBCORTICAL, WHOLE_BRAIN, ENIGMA_VOLUME)
    return "volume" if any(names.fullmatch(column) for names in volumes) else "unknown"


def is_chosen(column: str, settings: FreeSurferSettings) -> bool:
    """Whether the settings choose a column by its name, whatever its kind."""
    if settings.columns and not _any_of(column, settings.columns):
        return False
    return not (_any_of(column, settings.leave_out) or (WHOLE_BRAIN.fullmatch(column) and not settings.whole_brain))


def is_feature(column: str, settings: FreeSurferSettings, unknown: Kind = "unknown") -> bool:
    """Whether the settings keep a column; columns of another kind must be named in full.

    Args:
        column: its name.
        settings: selection of columns and kinds.
        unknown: kind of a column whose name does not tell it.
    """
    kind = measure_of(column)
    kind = unknown if kind == "unknown" else kind
    return is_chosen(column, settings) and (kind in settings.measures or column in settings.columns)


def current_name(column: str, all_columns: Collection[str]) -> str:
    """Name of a structure in FreeSurfer 7 if the data have both names, else its own."""
    current = RENAMED.get(column, column)
    return current if current in all_columns else column


def _any_of(column: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(column, pattern) for pattern in patterns)
