from ._settings import (
    Topology, Calibration, NOISE, NOISE_DESCRIPTION, FederationSettings, ROBUSTNESS_KEYS, TRIMMING, RobustnessSettings,
    share_of, PRIVACY_KEYS, PRIVACY_DESCRIPTION, PrivacySettings, PrivateSchedule, sampling_rate, steps_of_an_epoch,
)
from ._accounting import Steps, epsilon_spent, composed_epsilon, noise_multiplier, planned_steps, Spending, spending_row
from ._adam import Adam
from ._message import GRADIENT_NORM, Message
from ._noise import private_normal, DrawnAhead, generator_of, normal, WeightNoise
from ._link import Arrays, Pace, EveryRound, Link, TOGETHER
from ._sharing import (
    STAGES, OF_SUBJECTS, Ledger, Content, EVERY, add_up, columns, record_uploads, record_downloads, record_pool,
    record_pools, record_loan, record_summaries, record_help, of_institutions,
)
from ._wire import SIZE_BYTES, Wire
from ._attacks import attacked_institutions, flipped_labels, Federation, attack_of
from ._defences import median, trimmed_mean, Defence, defence_of
from ._loop import Clients, federate

__all__ = [
    "Topology", "Calibration", "NOISE", "NOISE_DESCRIPTION", "FederationSettings", "ROBUSTNESS_KEYS", "TRIMMING",
    "RobustnessSettings", "share_of", "PRIVACY_KEYS", "PRIVACY_DESCRIPTION", "PrivacySettings", "PrivateSchedule",
    "sampling_rate", "steps_of_an_epoch",
    "Steps", "epsilon_spent", "composed_epsilon", "noise_multiplier", "planned_steps", "Spending", "spending_row",
    "Adam",
    "GRADIENT_NORM", "Message",
    "private_normal", "DrawnAhead", "generator_of", "normal", "WeightNoise",
    "Arrays", "Pace", "EveryRound", "Link", "TOGETHER",
    "STAGES", "OF_SUBJECTS", "Ledger", "Content", "EVERY", "add_up", "columns", "record_uploads", "record_downloads",
    "record_pool", "record_pools", "record_loan", "record_summaries", "record_help", "of_institutions",
    "SIZE_BYTES", "Wire",
    "attacked_institutions", "flipped_labels", "Federation", "attack_of",
    "median", "trimmed_mean", "Defence", "defence_of",
    "Clients", "federate",
]
