"""The torch side of CentralGCN (FedNI Sec. 9)."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.gcn.centralgcn import METHOD, CentralGCNSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: CentralGCNSettings, run: Run) -> Outcome:
    """Train CentralGCN on everybody's data on one repeat."""
    return train_stacked(
        inputs,
        settings.schedule(),
        run,
        hidden=settings.hidden,
        graph=True,
        standardise=settings.standardise == "institution",
        shared_tensors=METHOD.shared_tensors,
        precision=settings.precision,
        dropout=settings.dropout,
        topology="central",
    )
