"""The only way between institutions and server in a round: it privatises, attacks, records and refuses."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import torch

from brainfed.federation._message import Message
from brainfed.federation._noise import WeightNoise
from brainfed.federation._sharing import Direction, Ledger, UndeclaredCrossing

SIZE_BYTES = 4
"""An institution's number of training subjects, int32."""

Attack = Callable[[int, Mapping[int, Message], Mapping[int, Message]], Mapping[int, Message]]
"""Round number, replies, and what each institution last received, none before the first answer -> replies that reach
the server, some of them poisoned."""


class Wire:
    """Carry the messages of one training: check every tensor, and count those of the first fold.

    Args:
        ledger: records tensors, and refuses undeclared ones.
        subjects: institution -> number of its subjects, for the ledger's check.
        noise: on weights that leave an institution; its folds are the first axis of every tensor.
        reported: institution -> number of training subjects, sent to the server before the first round where weights
            or the number of local steps depend on it. None: the server knows only which institutions take part.
        home: the institution that acts as the server; None: a server outside the institutions. Messages to itself do
            not cross.
        attack: of an experiment on poisoned replies.
    """

    def __init__(
        self,
        ledger: Ledger,
        subjects: Mapping[int, int],
        noise: WeightNoise,
        reported: Mapping[int, int] | None = None,
        home: int | None = None,
        attack: Attack | None = None,
    ) -> None:
        self.ledger, self.subjects, self.noise = ledger, subjects, noise
        self._home, self._attack = home, attack
        self._received: dict[int, Message] = {}
        self._reports = reported is not None
        for institution in reported or {}:
            self._record(institution, "training-subjects", (), SIZE_BYTES, "upload", 0)

    def up(self, number: int, replies: Mapping[int, Message]) -> Mapping[int, Message]:
        """The replies of round `number` that reach the server, with noise added in place to the senders' tensors.

        Raises:
            UndeclaredCrossing: a tensor is undeclared, its first axis is not the folds, or an axis has the length of
                the list of subjects.
            ValueError: noise or an attack is for each reply, and the replies are summed in one memory.
        """
        leaving = {code: reply for code, reply in replies.items() if code != self._home}
        self._check(leaving)
        for reply in leaving.values():
            noisy = self.noise.scale != 0 and reply.tensors.keys() - reply.plain
            if reply.summed and (noisy or self._attack is not None):
                raise ValueError("expected a reply of each institution for noise or an attack, found their sum")
        self.noise.add(number, leaving)
        self._count(number, leaving, leaving, "upload")
        if self._attack is not None:
            replies = {**replies, **self._attack(number, leaving, self._received)}
        if self._reports:
            return replies
        return {code: replace(reply, samples=(reply.samples > 0).to(torch.int64)) for code, reply in replies.items()}

    def down(self, number: int, messages: Mapping[int, Message], to: Collection[int]) -> Mapping[int, Message]:
        """The server's messages before round `number` that reach the institutions.

        Messages to the institutions `to` are counted. A simulation gives the model to all others at once; a real
        institution receives it when it is next chosen. An institution that acts as the server sends one copy of its
        weights with noise to all.

        Raises:
            UndeclaredCrossing: as for `up`.
        """
        leaving = {code: message for code, message in messages.items() if code != self._home}
        self._check(leaving)
        # An answer is counted with the round that it ends.
        self._count(number if self._home is not None else max(number - 1, 0), leaving, to, "download")
        if self._home is not None and leaving:
            messages = {**messages, **self.noise.copies(number, self._home, leaving)}
        if self._attack is not None:
            self._received.update(messages)
        return messages

    def _check(self, messages: Mapping[int, Message]) -> None:
        folds = len(self.noise.folds)
        for institution, message in messages.items():
            for name, tensor in message.tensors.items():
                if tuple(tensor.shape[:1]) != (folds,):
                    raise UndeclaredCrossing(f"{name}: expected {folds} folds first, found {(*tensor.shape,)}")
                self.ledger.check(name, message.sent(name), tensor.element_size(), self.subjects[institution])

    def _count(self, number: int, messages: Mapping[int, Message], ends: Collection[int], way: Direction) -> None:
        for institution, message in messages.items():
            if institution not in ends or not message.in_first_fold:
                continue
            for name, tensor in message.tensors.items():
                shape, itemsize = message.sent(name), tensor.element_size()
                self._record(institution, name, shape, itemsize, way, number)
                if self._home is not None:
                    other: Direction = "download" if way == "upload" else "upload"
                    self._record(self._home, name, shape, itemsize, other, number)

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
            subjects=self.subjects[institution],
            to="server" if way == "upload" and self._home is None else "institutions",
        )
