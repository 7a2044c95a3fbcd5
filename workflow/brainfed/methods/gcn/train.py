"""The torch side of FedGCN, LocalGCN and CentralGCN: one network, trained with others, alone or on pooled data."""

from functools import partial

from brainfed.graphs.propagation import normalised_adjacency
from brainfed.methods.classifier_settings import SoloSettings
from brainfed.methods.gcn.declaration import CENTRALGCN, FEDGCN, LOCALGCN, FedGCNSettings
from brainfed.methods.method import Method
from brainfed.methods.train_classifier import train_classifier
from brainfed.models.fedni import GCN
from brainfed.runtime.jobs.checkpoints import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train(method: Method, inputs: MethodInputs, settings: FedGCNSettings | SoloSettings, run: Run) -> Outcome:
    """Train FedNI's Table IV on one repeat (FedNI Sec. 7 and 9)."""
    skip = isinstance(settings, FedGCNSettings) and settings.skip == "linear"
    module = GCN(inputs.features[0].shape[1], settings.hidden, inputs.classes, skip=skip)
    return train_classifier(method, module, inputs, settings, run, normalised_adjacency)


train_fedgcn = partial(train, FEDGCN)
train_localgcn = partial(train, LOCALGCN)
train_centralgcn = partial(train, CENTRALGCN)
