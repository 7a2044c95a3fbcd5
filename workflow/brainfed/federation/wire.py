"""The only way between institutions and server: what leaves is privatised, recorded, or refused."""

from collections.abc import Collection, Mapping

from brainfed.federation.exchange import Direction, Ledger
from brainfed.federation.message import Message
from brainfed.federation.privacy import WeightNoise

SIZE_BYTES = 4
"""An institution's number of training subjects, int32."""


class Wire:
    """Carries the messages of one training.

    Args:
        ledger: records them, and refuses what was not declared.
        people: institution -> number of its subjects, for the ledger's check.
        noise: on what leaves.
        told: institution -> training subjects that it reports to the server before the first round, where weights or
            the number of local steps depend on them; empty: nothing is reported.
    """

    def __init__(
        self, ledger: Ledger, people: Mapping[int, int], noise: WeightNoise, told: Mapping[int, int] | None = None
    ) -> None:
        self.ledger, self.people, self.noise = ledger, people, noise
        for institution in told or {}:
            self._record(institution, "training-subjects", (), SIZE_BYTES, "upload", 0)

    def up(self, number: int, replies: Mapping[int, Message]) -> Mapping[int, Message]:
        """What reaches the server in round `number`: noise is added in place, to what the senders hold."""
        self.noise.add(number, replies)
        self._record_all(number, replies, replies, "upload")
        return replies

    def down(self, number: int, messages: Mapping[int, Message], to: Collection[int]) -> Mapping[int, Message]:
        """What reaches institutions. Those that took part are counted: the others need it when they are next chosen."""
        self._record_all(number, messages, to, "download")
        return messages

    def _record_all(self, number: int, messages: Mapping[int, Message], ends: Collection[int], way: Direction) -> None:
        for institution, message in messages.items():
            if institution not in ends or not message.counted:
                continue
            for name, tensor in message.tensors.items():
                self._record(institution, name, tuple(tensor.shape[1:]), tensor.element_size(), way, number)

    def _record(
        self, institution: int, name: str, shape: tuple[int, ...], itemsize: int, way: Direction, number: int
    ) -> None:
        self.ledger.record(
            name,
            shape,
            itemsize,
            direction=way,
            round_index=number,
            institution=institution,
            subjects=self.people[institution],
        )
