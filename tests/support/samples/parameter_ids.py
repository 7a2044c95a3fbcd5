"""Names of parametrised tests that are the same in every process."""


def in_order(value: object) -> str:
    """`str`, but for sets, whose order changes from process to process."""
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set | frozenset) and value else str(value)
