"""The torch side of CentralGCN (FedNI Sec. 9)."""

from brainfed.methods.centralgcn import METHOD, CentralGCNSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: CentralGCNSettings, run: Run) -> Outcome:
    """Train CentralGCN on everybody's data on one repeat."""
    return train_stacked(
        inputs,
        settings.schedule(),
        run,
        hidden=settings.hidden,
        graph=True,
        standardise=settings.standardise == "institution",
        crosses=METHOD.crosses,
        precision=settings.precision,
        dropout=settings.dropout,
        exchange=False,
        pooled=True,
    )
