"""Private FedTangent: private federated ridge on tangent features at the identity, which no other subject enters."""

from brainfed.methods.classifier_settings import SIZES_TENSORS
from brainfed.methods.linear.ridge import TANGENT
from brainfed.methods.method import Method, Twins
from brainfed.methods.private_linear.settings import RIDGE_TENSORS, STEPS, PrivateRidgeSettings

METHOD = Method(
    name="fedtangent-dp",
    title="FedTangent, private",
    settings=PrivateRidgeSettings,
    entry="brainfed.methods.private_linear.train_ridge:train_fedtangent_dp",
    family="federated",
    topology="federated",
    twins=Twins("tangent-local", "tangent-central", "The twins are not private: they choose a penalty.", apart=STEPS),
    options={"features": {**TANGENT, "reference": "identity"}},
    own_features=True,
    shared_tensors={**RIDGE_TENSORS, **SIZES_TENSORS},
    quick={"rounds": 3},
    variants={"fedtangent-dp": {}, "fedtangent-no-dp": {"privacy": "none"}},
)
