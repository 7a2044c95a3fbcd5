"""The torch side of FedMLP (FedNI Sec. 7 and 9)."""

from brainfed.methods.fedmlp import METHOD, FedMLPSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: FedMLPSettings, run: Run) -> Outcome:
    """Train FedMLP on one repeat."""
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=settings.hidden,
        graph=False,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        precision=settings.precision,
        dropout=settings.dropout,
    )
