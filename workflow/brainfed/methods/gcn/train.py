"""The torch side of FedGCN, LocalGCN and CentralGCN: one network, trained with others, alone or on pooled data."""

from functools import partial

from brainfed.graphs import normalised_adjacency
from brainfed.methods import Method, SoloSettings, train_classifier
from brainfed.methods.gcn.declaration import CENTRALGCN, FEDGCN, LOCALGCN, FedGCNSettings
from brainfed.models import GCN
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome


def train(method: Method, inputs: MethodInputs, settings: FedGCNSettings | SoloSettings, run: Run) -> Outcome:
    """Train FedNI's Table IV on one repeat (FedNI Sec. 7 and 9)."""
    skip = isinstance(settings, FedGCNSettings) and settings.skip == "linear"
    module = GCN(inputs.features[0].shape[1], settings.hidden, inputs.classes, skip=skip)
    return train_classifier(method, module, inputs, settings, run, normalised_adjacency)


train_fedgcn = partial(train, FEDGCN)
train_localgcn = partial(train, LOCALGCN)
train_centralgcn = partial(train, CENTRALGCN)
