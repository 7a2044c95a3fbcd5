"""Colours of the report: a thing has one colour in every chart and every figure."""

INK = "#22262b"
FAINT = "#6b7280"
RULE = "#d5d9de"
PATIENT, CONTROL, UNLABELLED = "#882255", "#56a9cf", "#c4c8cd"
MALE, FEMALE = "#44559a", "#c9a227"
SEX_COLOURS = {"male": MALE, "female": FEMALE}
DIAGNOSIS_COLOURS = {1: PATIENT, 0: CONTROL}
MANY_CLASSES = ("#56a9cf", "#e0a100", "#882255", "#117733", "#44559a", "#d55e00", "#7d8590", "#22262b")
"""Colours of three classes and more, in the order of their codes; a ninth has the first again."""
WARM, COLD = "#b2182b", "#2166ac"
"""What is raised and what is lowered in patients."""
ACCENT, ODD, KEPT = "#44559a", "#b45309", "#0f766e"
"""Measures without groups, what stands out or was left out, and the analysed subjects."""
COUNTS = "#9aa7c7"
"""Bars of a histogram."""
REAL, GENERATED = "#7d8590", "#d55e00"
SERIES = (
    ("#d55e00", "circle"), ("#0072b2", "square"), ("#008f68", "triangle-up"), ("#882255", "diamond"),
    ("#c9a227", "triangle-down"), ("#56a9cf", "cross"), ("#44559a", "triangle-right"),
)  # fmt: skip
"""Colour and mark of lines that are no places of training; both differ, so that they are distinct without colour."""
ORDERED = ("#7ad151", "#22a884", "#2a788e", "#414487", "#440154")
"""Of lines that are values of one setting, the lowest first."""
GRAPHS = ("#44559a", "#c9a227", "#7d8590", "#0f766e", "#882255", "#56a9cf", "#b45309", "#22262b")
"""Of distinct population graphs."""


def class_colours(classes: int) -> dict[int, str]:
    """Code of a class -> its colour."""
    if classes == 2:
        return DIAGNOSIS_COLOURS
    return {code: MANY_CLASSES[code % len(MANY_CLASSES)] for code in range(classes)}
