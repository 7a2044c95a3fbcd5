"""The torch side of FedNI's second phase (FedNI Sec. III-C.2, 7 and 9)."""

from brainfed.methods.fedni.declaration import FEDNI
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train as train_gcn
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, with_generated, without_generated


def train(inputs: MethodInputs, settings: FedGCNSettings, run: Run) -> Outcome:
    """Train FedNI's classifier on one repeat's fused graphs; without generated nodes it equals FedGCN bit for bit."""
    return without_generated(train_gcn(FEDNI, with_generated(inputs), settings, run), len(inputs.subjects))
