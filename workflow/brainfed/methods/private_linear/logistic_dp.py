"""Private federated logistic regression: DP-SGD in every institution, mean of the weights (Abadi et al. 2016)."""

from brainfed.methods.method import Method, Twins
from brainfed.methods.private_linear.settings import NETWORK_STEPS, PrivateNetworkSettings

METHOD = Method(
    name="logistic-dp",
    title="Logistic, private",
    settings=PrivateNetworkSettings,
    entry="brainfed.methods.private_linear.train_network:train_logistic_dp",
    family="federated",
    topology="federated",
    twins=Twins(
        "logistic-local",
        "logistic-central",
        "The twins are not private: they z-score by training subjects and choose a penalty.",
        apart=NETWORK_STEPS,
    ),
    own_features=True,
    gpu=True,
    shared_tensors={"weight-0": ("features", "classes"), "bias-0": ("classes",)},
    quick={"rounds": 3},
    variants={"logistic-dp": {}, "logistic-no-dp": {"privacy": "none"}},
)
