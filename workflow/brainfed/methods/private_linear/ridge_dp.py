"""Private federated ridge: gradient steps of the squared loss on clipped and noised sums."""

from brainfed.methods.classifier_settings import SIZES_TENSORS
from brainfed.methods.method import Method, Twins
from brainfed.methods.private_linear.settings import RIDGE_TENSORS, STEPS, PrivateRidgeSettings

METHOD = Method(
    name="ridge-dp",
    title="Ridge, private",
    settings=PrivateRidgeSettings,
    entry="brainfed.methods.private_linear.train_ridge:train_ridge_dp",
    family="federated",
    topology="federated",
    twins=Twins(
        "ridge-local",
        "ridge-central",
        "The twins are not private: they z-score by training subjects and choose a penalty.",
        apart=STEPS,
    ),
    own_features=True,
    shared_tensors={**RIDGE_TENSORS, **SIZES_TENSORS},
    quick={"rounds": 3},
    variants={"ridge-dp": {}, "ridge-dp-once": {"rounds": 1, "balance": "none"}, "ridge-no-dp": {"privacy": "none"}},
)
