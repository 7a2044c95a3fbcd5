"""What a method's score means, and above which value it calls a subject a patient."""

from typing import Literal

ScoreKind = Literal["probability", "margin"]
THRESHOLD: dict[str, float] = {"probability": 0.5, "margin": 0.0}
