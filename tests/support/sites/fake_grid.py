"""Flower's grid in the place of three sites that answer at once."""

from types import SimpleNamespace

from flwr.app import ConfigRecord, Error, RecordDict

from brainfed.sites import INTRODUCE, Packet
from brainfed.sites.flower._messages import RECORD, addressed, from_records

NAMES = {0: "north", 1: "south", 2: "east"}


def message(content, dst_node_id, group_id=None, ttl=0.0, **_):
    """Flower makes none outside a run."""
    metadata = SimpleNamespace(dst_node_id=dst_node_id, group_id=group_id or "", ttl=ttl)
    return SimpleNamespace(content=content, metadata=metadata)


def received(sent):
    """The packet that a site reads."""
    return addressed(from_records(sent.content), sent)


def echo(name, asked):
    """A reply that repeats the words of the question."""
    return Packet("reply", {"site": name, "asked": dict(asked.about)})


class Grid:
    """Sites, and the messages to them.

    Args:
        answer: (site's name, packet) -> its reply, or bytes or an error of Flower's in its place.
        introduced: site's name -> the same in the place of its introduction; None: it says its name.
    """

    def __init__(self, answer=echo, introduced=lambda name: None):
        self.sent, self._answer, self._introduced = [], answer, introduced

    def get_node_ids(self):
        return [code + 1 for code in NAMES]

    def push_messages(self, messages):
        first = len(self.sent)
        self.sent += messages
        return [str(number) for number in range(first, len(self.sent))]

    def pull_messages(self, numbers):
        replies = []
        for number in numbers:
            asked = received(self.sent[int(number)])
            name = NAMES[self.sent[int(number)].metadata.dst_node_id - 1]
            if asked.kind == INTRODUCE:
                reply = self._introduced(name) or Packet(INTRODUCE, {"site": name})
            else:
                reply = self._answer(name, asked)
            metadata = SimpleNamespace(reply_to_message_id=number)
            if isinstance(reply, Error):
                replies.append(SimpleNamespace(metadata=metadata, has_error=lambda: True, error=reply))
                continue
            if isinstance(reply, Packet):
                reply = Packet(reply.kind, reply.about, reply.tensors, asked.number).to_bytes()
            content = RecordDict({RECORD: ConfigRecord({RECORD: reply})})
            replies.append(SimpleNamespace(metadata=metadata, has_error=lambda: False, content=content))
        return replies
