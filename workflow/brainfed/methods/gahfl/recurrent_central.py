"""Central recurrent network: GAHFL's global network on the pooled series, which a federation may not train."""

from brainfed.methods.fglbc.settings import POOLED_SERIES
from brainfed.methods.gahfl.settings import QUICK_CROPS, OneRecurrentSettings
from brainfed.methods.method import Method

METHOD = Method(
    name="recurrent-central",
    title="Central recurrent network",
    settings=OneRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_central",
    family="graph",
    topology="central",
    needs=("series",),
    gpu=True,
    on_request=("recurrent-central",),
    shared_tensors=POOLED_SERIES,
    quick=QUICK_CROPS,
    variants={"recurrent-central": {}},
)
