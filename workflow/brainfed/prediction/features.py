"""Features of a new patient, by the functions of the jobs that computed those of training."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.connectivity import connectivity
from brainfed.imaging.settings import FeatureSettings
from brainfed.imaging.tangent.covariances import covariances
from brainfed.prediction.model_file import Part
from brainfed.prediction.patients import Patient
from brainfed.prediction.references import tangent_features
from brainfed.runtime.settings import restore


def features_of(patient: Patient, about: Mapping[str, Any], part: Part, institution: int | None) -> NDArray[np.float32]:
    """Features (1, d).

    Args:
        patient: its region series.
        about: the model's description.
        part: the model, with its reference.
        institution: number of the patient's institution; None where institutions do not differ.
    """
    settings = restore(FeatureSettings, about["features"])
    series, runs = {patient.name: patient.series}, {patient.name: patient.runs}
    if settings.tangent:
        found = covariances(series, about["regions"], settings.shrinkage, runs)
        return tangent_features(found, part.reference, institution)
    return connectivity(series, settings, runs)
