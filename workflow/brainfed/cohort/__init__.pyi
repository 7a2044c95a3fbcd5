from ._classes import (
    Target, Sex, Diagnosis, CLASSES, NO_NUMBERS, NO_COVARIATES, check_class_names, check_meanings, ClassWords, PLURALS,
    DIAGNOSIS_WORDS, class_words,
)

__all__ = [
    "Target", "Sex", "Diagnosis", "CLASSES", "NO_NUMBERS", "NO_COVARIATES", "check_class_names", "check_meanings",
    "ClassWords", "PLURALS", "DIAGNOSIS_WORDS", "class_words",
]
