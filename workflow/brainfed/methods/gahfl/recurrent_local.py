"""Local recurrent networks: every institution's network on all its own training subjects, the local twin of GAHFL."""

from brainfed.methods.gahfl.settings import QUICK_CROPS, LocalRecurrentSettings
from brainfed.methods.gahfl.tensors import RECURRENT_TENSORS
from brainfed.methods.method import Method

METHOD = Method(
    name="recurrent-local",
    title="Local recurrent networks",
    settings=LocalRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_local",
    family="graph",
    topology="local",
    needs=("series",),
    gpu=True,
    on_request=("recurrent-local",),
    shared_tensors=RECURRENT_TENSORS,
    quick=QUICK_CROPS,
    variants={"recurrent-local": {}},
)
