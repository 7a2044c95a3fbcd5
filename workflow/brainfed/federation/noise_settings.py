"""The noise setting that all federated trainings share."""

NOISE = 0.01
"""FedNI's standard deviation."""

NOISE_DESCRIPTION = (
    "Standard deviation of the noise on uploaded weights, 0 or `off` for none. "
    "Without an accountant it is no formal privacy guarantee."
)
