"""The meaning of a method's scores, and the value above which a subject of two classes is called a patient."""

from typing import Literal

ScoreKind = Literal["probability", "margin"]
THRESHOLD: dict[str, float] = {"probability": 0.5, "margin": 0.0}
