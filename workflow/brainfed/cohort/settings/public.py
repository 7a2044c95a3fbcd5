"""Settings of the public subjects of every institution (GAHFL, Setting: public ratio R)."""

from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class PublicSettings:
    """Settings of the public subjects, for methods whose server has data of its own."""

    ratio: float = setting(
        0.3,
        "Share of the training subjects of each class that every institution gives to the server, rounded, in each "
        "fold; the rest stays private. Subjects that are public at one ratio are so at every larger one.",
        minimum=0.01,
        maximum=0.99,
    )
