"""GAHFL's global network on the public subjects alone, to which a federation may add something or not."""

from brainfed.methods.gahfl.settings import QUICK_CROPS, OneRecurrentSettings
from brainfed.methods.gahfl.tensors import PUBLIC_TENSORS, RECURRENT_TENSORS
from brainfed.methods.method import Method

METHOD = Method(
    name="recurrent-public",
    title="Public subjects alone",
    settings=OneRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_public",
    family="graph",
    topology="central",
    needs=("series", "public"),
    members=False,
    gpu=True,
    on_request=("recurrent-public",),
    shared_tensors={**PUBLIC_TENSORS, **RECURRENT_TENSORS},
    quick=QUICK_CROPS,
    variants={"recurrent-public": {}},
)
