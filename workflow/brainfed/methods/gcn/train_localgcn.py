"""The torch side of LocalGCN (FedNI Sec. 9)."""

from brainfed.engines.stacked.training import train_stacked
from brainfed.methods.gcn.localgcn import METHOD, LocalGCNSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(inputs: MethodInputs, settings: LocalGCNSettings, run: Run) -> Outcome:
    """Train LocalGCN in every institution alone on one repeat."""
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
        topology="local",
    )
