"""Kinds of scores, and the threshold above which a subject of two classes is predicted to be a patient."""

from typing import Literal

ScoreKind = Literal["probability", "margin"]
THRESHOLD: dict[str, float] = {"probability": 0.5, "margin": 0.0}
