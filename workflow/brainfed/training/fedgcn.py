"""The torch side of FedGCN (FedNI Sec. 7 and 9)."""

from brainfed.methods.fedgcn import METHOD, FedGCNSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.sampled import train_sampled
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: FedGCNSettings, run: Run) -> Outcome:
    """Train FedGCN on one repeat."""
    if settings.neighbours:
        return train_sampled(inputs, settings, run, METHOD.crosses)
    return train_stacked(
        inputs,
        settings,
        run,
        hidden=settings.hidden,
        graph=True,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        precision=settings.precision,
        dropout=settings.dropout,
        skip=settings.skip == "linear",
    )
