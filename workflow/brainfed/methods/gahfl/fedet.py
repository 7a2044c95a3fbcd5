"""Fed-ET: distilled on a public set with weights from the variance of logits (Cho et al. 2022)."""

from dataclasses import dataclass

from brainfed.methods.gahfl.settings import QUICK_CROPS, DistilledSettings
from brainfed.methods.gahfl.tensors import DISTILLED_TENSORS
from brainfed.methods.gahfl.twins import TWINS
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedETSettings(DistilledSettings):
    """The federation's settings and the weights of the server's terms, beside the loss of the public labels."""

    consensus: float = setting(
        1.0,
        "Weight of the divergence from the institutions' consensus. It is ours: Fed-ET has no such term, and 0 is its "
        "loss.",
        minimum=0,
    )
    diversity: float = setting(
        0.05, "Weight of the divergence from the institutions that disagree with the consensus.", minimum=0
    )


METHOD = Method(
    name="fedet",
    title="Fed-ET + consensus",
    settings=FedETSettings,
    entry="brainfed.methods.gahfl.train:train_fedet",
    family="federated",
    topology="federated",
    twins=TWINS,
    needs=("series", "public"),
    gpu=True,
    on_request=("fedet", "fedet-literal"),
    shared_tensors=DISTILLED_TENSORS,
    quick={"global_epochs": 2, **QUICK_CROPS},
    variants={"fedet": {}, "fedet-literal": {"consensus": 0.0}},
)
