"""The torch side of LocalGCN (FedNI Sec. 9)."""

from brainfed.methods.localgcn import METHOD, LocalGCNSettings
from brainfed.runtime.run import Run
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import train_stacked


def train(inputs: MethodInputs, settings: LocalGCNSettings, run: Run) -> Outcome:
    """Train LocalGCN in every institution alone on one repeat."""
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
        pooled=False,
    )
