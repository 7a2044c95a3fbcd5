"""Settings of federated training in private steps (Abadi et al. 2016; McMahan et al. 2017)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation.privacy.settings import PrivacySettings
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class PrivateSchedule(PrivacySettings):
    """Rounds, local steps and privacy; `privacy: none` takes the same steps on the same batches without noise."""

    rounds: int = setting(20, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(1, "Local epochs E between two communications.", minimum=1)
    batch: int = setting(
        32,
        "Expected number of subjects a local step: each training subject is in it with probability batch / training "
        "subjects, and an epoch has training subjects / batch steps; 0: all in one step.",
        minimum=0,
    )
    optimiser: Literal["sgd", "adam"] = setting("sgd", "Optimiser of the local steps.")
    learning_rate: float = setting(0.1, "Learning rate of the optimiser.", minimum=0)
    momentum: float = setting(0.0, "Of `optimiser: sgd`.", minimum=0, maximum=1)
    weight_decay: float = setting(0.0, "L2 penalty of the optimiser; it reads no data and spends nothing.", minimum=0)
    optimiser_state: Literal["reset", "keep"] = setting("keep", "What a client's optimiser does between rounds.")


def sampling_rate(batch: int, subjects: int) -> float:
    """Probability q that a local step includes a subject, of an institution with so many training subjects."""
    return 1.0 if not batch else min(batch / max(subjects, 1), 1.0)


def steps_of_an_epoch(batch: int, subjects: int) -> int:
    """Local steps of one epoch, 1 / q rounded up; none without training subjects."""
    return -(-subjects // batch) if batch else min(subjects, 1)
