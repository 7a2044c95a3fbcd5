"""Private FedMLP: DP-SGD in every institution, and the mean of the weights (Abadi et al. 2016)."""

from brainfed.methods.classifier_settings import NETWORK_TENSORS
from brainfed.methods.method import Method, Twins
from brainfed.methods.private_linear.settings import NETWORK_STEPS, PrivateMLPSettings

METHOD = Method(
    name="fedmlp-dp",
    title="FedMLP, private",
    settings=PrivateMLPSettings,
    entry="brainfed.methods.private_linear.train_network:train_fedmlp_dp",
    family="federated",
    topology="federated",
    twins=Twins(
        "localmlp",
        "centralmlp",
        "The twins are not private: they z-score by training subjects, and step by Adam.",
        apart=NETWORK_STEPS,
    ),
    own_features=True,
    gpu=True,
    shared_tensors=NETWORK_TENSORS,
    quick={"rounds": 4, "hidden": (8, 4)},
    variants={"fedmlp-dp": {}, "fedmlp-no-dp": {"privacy": "none", "learning_rate": 0.3}},
)
