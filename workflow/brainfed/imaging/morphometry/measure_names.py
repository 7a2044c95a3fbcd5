"""Kinds of FreeSurfer measures by column name; ADNI's are `ST44CV`, `ST44SA`, `ST44TA`, `ST29SV`."""

import re
from fnmatch import fnmatchcase

from brainfed.cohort.settings.freesurfer import FreeSurferSettings

INTRACRANIAL = ("EstimatedTotalIntraCranialVol", "eTIV", "IntraCranialVol", "ICV", "ST10CV")
"""Names of the estimated intracranial volume in FreeSurfer's versions, merged tables and ADNI's tables."""

WHOLE_BRAIN = re.compile(
    r"(Estimated(Total)?)?IntraCranialVol|eTIV|ICV|ST10CV|(lh|rh)?(Cortex|CorticalWhiteMatter|CerebralWhiteMatter)Vol"
    r"|SubCortGrayVol|TotalGrayVol|SupraTentorialVol\w*|BrainSegVol\w*|MaskVol|[lr]h_(MeanThickness|WhiteSurfArea)_\w+"
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
ADNI_KINDS = {"CV": "volume", "SV": "volume", "HS": "volume", "SA": "area", "TA": "thickness", "TS": "other"}
CORTICAL = re.compile(r"[lr]h_.+_(?P<kind>[A-Za-z]+)")
OTHER = re.compile(r".*(_mean|_std|-to-eTIV|SurfaceHoles)")


def measure_of(column: str) -> str:
    """Kind `volume`, `thickness`, `area`, or `other`: curvatures, ratios, counts, and columns of other programs."""
    if found := ADNI.fullmatch(column):
        return ADNI_KINDS[found["kind"]]
    if found := CORTICAL.fullmatch(column):
        return found["kind"] if found["kind"] in ("volume", "thickness", "area") else "other"
    if OTHER.fullmatch(column):
        return "other"
    return "volume" if SUBCORTICAL.fullmatch(column) or WHOLE_BRAIN.fullmatch(column) else "other"


def is_feature(column: str, settings: FreeSurferSettings) -> bool:
    """Whether the settings keep a column; columns of another kind must be named in full."""
    if settings.columns and not _any_of(column, settings.columns):
        return False
    if _any_of(column, settings.leave_out) or (WHOLE_BRAIN.fullmatch(column) and not settings.whole_brain):
        return False
    return measure_of(column) in settings.measures or column in settings.columns


def _any_of(column: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(column, pattern) for pattern in patterns)
