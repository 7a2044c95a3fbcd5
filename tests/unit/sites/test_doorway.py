"""The socket between a site's training process and Flower's relay."""

import errno
import os
import socket
import threading
from contextlib import contextmanager

import pytest

from brainfed.sites import REFUSED, NobodyThereError, Packet, ask_here, serve
from brainfed.sites._ipc import serve_each

DATA = "subject-17 has 3.25"


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


@contextmanager
def answered_by(answer, place, how=serve):
    """A training process that answers at a socket while the body runs."""
    ending = threading.Event()
    site = threading.Thread(target=how, args=(place, answer, ending), daemon=True)
    site.start()
    try:
        yield
        assert site.is_alive()
    finally:
        ending.set()
        site.join(5)


@pytest.mark.parametrize("how", [serve, serve_each])
def test_a_mistake_in_the_program_is_a_refusal_and_the_next_request_is_answered(how, tmp_path, caplog):
    """Neither the coordinator nor the log reads the words of the error, which may hold data."""

    def answer(request):
        if request.kind == "bad":
            raise KeyError(DATA)
        if request.kind == "odd":
            return Packet("reply", {"set": {1}})
        return Packet("fine")

    with answered_by(answer, tmp_path / "socket", how):
        for kind, number in (("bad", "1"), ("odd", "2")):
            refusal = ask_here(tmp_path / "socket", Packet(kind, number=number), 5)
            assert (refusal.kind, refusal.number) == (REFUSED, number)
            assert f"a mistake in the program at a request of kind {kind!r}" in refusal.about["sentence"]
            assert DATA not in refusal.about["sentence"]
        assert ask_here(tmp_path / "socket", Packet("good", number="3"), 5).kind == "fine"
    assert "KeyError" in caplog.text and "test_doorway.py" in caplog.text
    assert DATA not in caplog.text


@pytest.mark.parametrize("how", [serve, serve_each])
@pytest.mark.parametrize("content", [b"\x00", b"garbage", Packet("go").to_bytes()[:-3], b"\x00" * 40])
def test_bytes_that_are_no_packet_are_refused_and_the_next_request_is_answered(how, content, tmp_path):
    with answered_by(lambda request: Packet("fine"), tmp_path / "socket", how):
        assert ask_here(tmp_path / "socket", Bytes("go", content), 5).kind == REFUSED
        assert ask_here(tmp_path / "socket", Packet("good"), 5).kind == "fine"


class Bytes(Packet):
    """A packet that is written as other bytes."""

    def __init__(self, kind, content):
        super().__init__(kind)
        object.__setattr__(self, "content", content)

    def to_bytes(self):
        return self.content


@pytest.mark.parametrize("how", [serve, serve_each])
def test_a_full_disk_is_reported_as_such(how, tmp_path):
    """The list of what leaves a site cannot be written: the job hears of the disk, not of a socket."""

    def full(request):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "left-this-site.tsv")

    with answered_by(full, tmp_path / "socket", how):
        refusal = ask_here(tmp_path / "socket", Packet("reply", number="1"), 5)
    assert (refusal.kind, refusal.number) == (REFUSED, "1")
    assert "No space left on device" in refusal.about["sentence"]


def test_a_client_that_hangs_up_harms_no_other(tmp_path):
    with answered_by(lambda request: Packet("fine"), tmp_path / "socket"):
        assert ask_here(tmp_path / "socket", Packet("good", number="1"), 5).kind == "fine"
        for sent in (b"", b"\x05", (99).to_bytes(8, "little") + b"half"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(str(tmp_path / "socket"))
                client.sendall(sent)
        assert ask_here(tmp_path / "socket", Packet("good", number="2"), 5).kind == "fine"
