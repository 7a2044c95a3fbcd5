"""The unix socket inside a hospital, between its training process and Flower's relay: one packet there, one back."""

import os
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from threading import Event, Thread
from typing import Final

from brainfed.runtime import UserError
from brainfed.sites._packet import REFUSED, Packet

Answer = Callable[[Packet], Packet]

SITE_SOCKET: Final = "BRAINFED_SITE_SOCKET"
"""Environment variable by which `brainfed join` gives its jobs the path of the socket."""
SECRET: Final = "BRAINFED_SECRET"
"""Environment variable with the path of the file that holds the key of the site's protective noise."""
LONGEST_PATH: Final = 107
"""Bytes of a path that the kernel takes for a unix socket."""
PATIENCE_S: Final = 5.0
"""How long a request waits for a training process that does not listen yet."""
_LENGTH: Final = struct.Struct("<Q")
_STEP_S: Final = 0.2
"""How often the training process looks whether it is to stop, and the relay whether there is a training process."""

_logger = getLogger(__name__)


class NobodyThereError(Exception):
    """No training process listens, or it ended before it answered."""


def serve_each(socket_path: Path, answer: Answer, stop: Event) -> None:
    """Answer packets of several connections side by side until `stop` is set; one that is cut off harms no other.

    Arguments and errors as of `serve`; nothing is answered twice.
    """
    for connection in _connections(socket_path, stop):
        Thread(target=_answer_once, args=(connection, partial(_answered, answer)), daemon=True).start()


def _answer_once(connection: socket.socket, answered: Callable[[Packet], bytes]) -> None:
    """Only a client that went away is passed over; all else has a reply."""
    with connection:
        try:
            request = Packet.from_bytes(_receive(connection))
        except (NobodyThereError, OSError):
            return
        except Exception as error:
            reply = _refusal(error, Packet("")).to_bytes()
        else:
            reply = answered(request)
        with suppress(OSError):
            _send(connection, reply)


def serve(socket_path: Path, answer: Answer, stop: Event) -> None:
    """Answer one packet at a time until `stop` is set.

    A request that is sent again has its number; the last reply is kept and given again, so that nothing is computed
    or counted twice. An exception of `answer` becomes a packet of kind `refused`: of a `UserError` with its sentence,
    of another one with no word of it, for it may hold data; the log has its type and the lines of the program.

    Args:
        socket_path: of the socket, which only this user can open; its folder is made with the same right.
        answer: request -> reply.
        stop: ends the loop within 0.2 s once the current request is answered.

    Raises:
        UserError: the path is too long for a socket.
        OSError: something is there already.
    """
    number, last = "", b""

    def once(request: Packet) -> bytes:
        nonlocal number, last
        if not request.number or request.number != number:
            number, last = request.number, _answered(answer, request)
        return last

    for connection in _connections(socket_path, stop):
        _answer_once(connection, once)


def _connections(path: Path, stop: Event) -> Iterator[socket.socket]:
    """Connections to a socket as they come, until `stop` is set."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UserError(
            f"{path}: expected a path of at most {LONGEST_PATH} bytes for a socket; choose a shorter folder"
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        try:
            path.chmod(0o600)
            listener.listen(4)
            listener.settimeout(_STEP_S)
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                connection.settimeout(None)
                yield connection
        finally:
            path.unlink(missing_ok=True)


def ask_here(socket_path: Path, request: Packet, patience_s: float) -> Packet:
    """The reply of the training process that answers at a socket (see `serve`), however long it takes.

    Raises:
        NobodyThereError: none listens after `patience_s` seconds, or it ended before it answered.
    """
    deadline = time.monotonic() + patience_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        while True:
            try:
                connection.connect(str(socket_path))
                break
            except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                if time.monotonic() >= deadline:
                    raise NobodyThereError(f"no training process listens at {socket_path}") from None
                time.sleep(_STEP_S)
        try:
            _send(connection, request.to_bytes())
            return Packet.from_bytes(_receive(connection))
        except OSError as error:
            raise NobodyThereError(
                f"the training process at {socket_path} ended before it answered: {error}"
            ) from error


def _answered(answer: Answer, request: Packet) -> bytes:
    try:
        return replace(answer(request), number=request.number).to_bytes()
    except Exception as error:
        return _refusal(error, request).to_bytes()


def _refusal(error: Exception, request: Packet) -> Packet:
    """The sentence of a `UserError`; of another error its type alone, for its words may hold data of a subject."""
    kind, name = request.kind, type(error).__name__
    if isinstance(error, UserError):
        sentence = str(error)
    elif isinstance(error, OSError):
        sentence = (
            f"a request of kind {kind!r}: expected to read and write the files of this site, found: "
            f"{error.strerror or name}; make room on the disk of `federation` or mend its rights, and start again: the "
            "job goes on from here."
        )
    else:
        sentence = (
            f"expected a reply, found a mistake in the program at a request of kind {kind!r} ({name}); the site's "
            "terminal shows its place: send that to the developers."
        )
    if not isinstance(error, UserError):
        lines = "".join(traceback.format_tb(error.__traceback__))
        _logger.error("a request of kind %r ended in %s at\n%s", kind, name, lines)
    return Packet(REFUSED, {"sentence": sentence}, number=request.number)


def _send(connection: socket.socket, content: bytes) -> None:
    connection.sendall(_LENGTH.pack(len(content)))
    connection.sendall(content)


def _receive(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return bytes(_exactly(connection, length))


def _exactly(connection: socket.socket, size: int) -> bytearray:
    content = bytearray(size)
    view, done = memoryview(content), 0
    while done < size:
        got = connection.recv_into(view[done:], size - done)
        if got == 0:
            raise NobodyThereError(f"expected {size} bytes from the socket, found its end after {done}")
        done += got
    return content


def ask_client(socket_path: Path, request: Packet) -> Packet:
    """The coordinator's answer to a joint job, which the site's client passes on, however long it takes.

    Raises:
        UserError: `brainfed join` ends meanwhile.
    """
    try:
        return ask_here(socket_path, request, PATIENCE_S)
    except NobodyThereError as error:
        raise UserError(
            f"expected `brainfed join` to pass this job's requests on, found it gone ({error}); run it again, the job "
            "goes on from its last round."
        ) from error
