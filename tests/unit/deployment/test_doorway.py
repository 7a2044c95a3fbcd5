"""The socket between a site's training process and Flower's relay."""

import threading

import pytest

from brainfed.deployment.doorway import NobodyThereError, ask_here, serve
from brainfed.federation.apart.packet import Packet


def test_a_request_that_is_sent_again_is_answered_once(tmp_path):
    asked = []

    def answer(request: Packet) -> Packet:
        asked.append(request.number)
        return Packet("reply", {"times": len(asked)})

    ending = threading.Event()
    site = threading.Thread(target=serve, args=(tmp_path / "room" / "socket", answer, ending))
    site.start()
    try:
        replies = [ask_here(tmp_path / "room" / "socket", Packet("go", number=number), 5) for number in ("1", "1", "2")]
    finally:
        ending.set()
        site.join()
    assert asked == ["1", "2"]
    assert [(reply.number, reply.about["times"]) for reply in replies] == [("1", 1), ("1", 1), ("2", 2)]
    assert not (tmp_path / "room" / "socket").exists()


def test_nobody_answers_where_no_training_process_runs(tmp_path):
    with pytest.raises(NobodyThereError):
        ask_here(tmp_path / "socket", Packet("go"), 0.1)
