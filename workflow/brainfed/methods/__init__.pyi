from ._classifier_settings import (
    NETWORK_TENSORS, SIZES_TENSORS, MOMENTS_TENSORS, SUMMED_MOMENTS_TENSORS, InputSettings, BETWEEN_SITES, QUICK_ROUNDS,
    QUICK_EPOCHS, CHOICE_TENSORS, ROUNDS_TENSORS, ChoiceSettings, FederatedClassifierSettings, SoloSettings,
)
from ._method import Comparison, Crossing, Capabilities, Method, Inpainter, inpainter_of
from ._registry import METHODS, ON_REQUEST, SHIPPED_VARIANTS
from ._train_classifier import poisoned_inputs, train_classifier

__all__ = [
    "NETWORK_TENSORS", "SIZES_TENSORS", "MOMENTS_TENSORS", "SUMMED_MOMENTS_TENSORS", "InputSettings", "BETWEEN_SITES",
    "QUICK_ROUNDS", "QUICK_EPOCHS", "CHOICE_TENSORS", "ROUNDS_TENSORS", "ChoiceSettings", "FederatedClassifierSettings",
    "SoloSettings",
    "Comparison", "Crossing", "Capabilities", "Method", "Inpainter", "inpainter_of",
    "METHODS", "ON_REQUEST", "SHIPPED_VARIANTS",
    "poisoned_inputs", "train_classifier",
]
