"""A job, as Snakemake sees it: it has a forking process run the script, passes signals on, and ends as the script ends.

    BRAINFED_FORKS=OWNER-WORD job-shell -c COMMAND

Only the standard library, and little of it: this is what a job costs. Without a forking process it becomes the script
itself, and for any other command than a script of this Python the shell that runs it.

No signal falls between two handlers. Signals are blocked when this program begins. Until the job is accepted, one ends
this process by the system's default, without Python. While the job is made they wait, in the system; afterwards they
are passed on. A script of a job of ours begins with all of them blocked, forked or not, and takes what has waited when
its own handlers stand (`runtime.jobs._stopping`): its imports would turn an interrupt into errors of their own.
"""

import os
import signal
import socket
import struct
import sys
import time

VARIABLE, OFF = "BRAINFED_FORKS", "off"
"""Name of the forking process, or that jobs start by themselves."""
STARTED_BY = "BRAINFED_STARTED_BY"
"""Variable of a forked job: the process of its client."""
PATIENCE_S, AGAIN_S = 5.0, 0.02
"""For a forking process to listen; between two tries."""
BETWEEN = "\0"
"""Between the script and the folders of PYTHONPATH, which a job names first."""
READY = b"+"
"""The forking process asks for the rest of a job; it answers with its process, and in the end with how it ended."""
NUMBER = struct.Struct("i")
NAMED = "job "
"""What this process calls itself, with the number of the process that runs the script (`forking._shell`)."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
PAUSE = (signal.SIGTSTP,)
"""Ctrl-Z waits, as those do, until it can be passed on."""
TAKES_SIGNALS = b"from brainfed.scripting import job"
"""In the script of a job of ours."""
CREDENTIALS = struct.Struct("3i")
"""Process, user and group at the other end of a socket."""


def main() -> None:
    """Run the command."""
    for number in _heard():
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    command, name = sys.argv[-1], os.environ.get(VARIABLE, OFF)
    before, script = split_command(command, sys.executable)
    if before:
        again = " ".join(
            map(_quoted, (sys.executable, "-I", "-S", sys.argv[0], "-c", f"{sys.executable} {_quoted(script)}"))
        )
        command = f"{before}exec {again}"
        # bash forgets an interrupt where a command of its own does not die of it. Blocked, it waits for this program.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    if before or not script:
        os.execvp("bash", ["bash", "-c", f"set -euo pipefail; {command}"])
    if None not in (sys.stdin, sys.stdout, sys.stderr) and name != OFF:
        server = _reached(name)
        if server is not None:
            _follow(server, script)
            server.close()
    os.environ.pop(STARTED_BY, None)
    signal.pthread_sigmask(signal.SIG_BLOCK if takes_signals(script) else signal.SIG_UNBLOCK, PASSED_ON)
    os.execv(sys.executable, [sys.executable, script])


def split_command(command: str, python: str) -> tuple[str, str]:
    """The commands before a script of this Python, and the script; no script for any other command.

    Snakemake writes the path of Python as it is, blanks included, and quotes the script.
    """
    before, _, last = command.rpartition(f"{python} ")
    quoted = len(last) > 2 and last[0] == last[-1] == "'" and "'" not in last[1:-1]
    plain = all(letter.isalnum() or letter in "@%_+=:,./-" for letter in last)
    if command == last or not (quoted or plain) or not (before.endswith("; ") or not before):
        return "", ""
    return before, last.strip("'")


def takes_signals(script: str) -> bool:
    """Whether a script sets the handlers of a job, and unblocks the signals with them."""
    try:
        with open(script, "rb") as file:
            return TAKES_SIGNALS in file.read()
    except OSError:
        return False


def _heard() -> list[int]:
    """The signals that are not ignored: `nohup` and a shell's background jobs rely on it."""
    return [int(number) for number in PASSED_ON if signal.getsignal(number) != signal.SIG_IGN]


def _quoted(word: str) -> str:
    """A word of a shell's command."""
    return "'" + word.replace("'", "'\\''") + "'"


def address(name: str) -> str:
    """The abstract address of a forking process: no file, and gone with the process."""
    return f"\0brainfed-forks-{name}"


def owner_of(name: str) -> str:
    """The process whose end is the end of the forking process."""
    return name.partition("-")[0]


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    process, user, _ = CREDENTIALS.unpack(credentials)
    return process, user


def _reached(name: str) -> socket.socket | None:
    """A connection to the forking process, which is started where there is none; None: the job starts by itself."""
    server = _connected(name)
    if server is None and os.path.exists(f"/proc/{owner_of(name)}"):
        end = time.monotonic() + (PATIENCE_S if _start(name) else 0.0)
        while server is None and time.monotonic() < end:
            time.sleep(AGAIN_S)
            server = _connected(name)
    if server is None or peer(server)[1] != os.getuid():
        return None
    return server


def _connected(name: str) -> socket.socket | None:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.connect(address(name))
    except OSError:
        server.close()
        return None
    return server


def _start(name: str) -> bool:
    """Start the forking process in a session of its own, out of reach of this terminal; return whether that worked.

    Two jobs may start one at once; the second finds the address taken, and ends.
    """
    try:
        between = os.fork()
    except OSError:
        return False
    if between:
        try:
            return os.waitpid(between, 0)[1] == 0
        except ChildProcessError:  # SIGCHLD is ignored here.
            return True
    try:
        _become_server(name)
    finally:
        os._exit(1)


def _become_server(name: str) -> None:
    os.setsid()
    if os.fork():
        os._exit(0)  # It would be one of this job's processes for who measures them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    # The threads of a job are set in the job; a process that forks may have one alone, Arrow's allocator included.
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    alone["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    program = [sys.executable, "-P", "-m", "brainfed.forking.server", name]
    os.execve(sys.executable, program, {**os.environ, **alone})


def _follow(server: socket.socket, script: str) -> None:
    """Have the server run the script, and end as it does; return if it has not begun there."""
    if not _is_accepted(server, script):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, (*PASSED_ON, *PAUSE))
    heard = _heard()
    if not _has_begun(server, [int(number) for number in PASSED_ON if number not in heard]):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PAUSE)
        return
    for number in heard:
        signal.signal(number, lambda number, _frame: _pass_on(server, number))
    if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, lambda *_: _stop(server))
        signal.signal(signal.SIGCONT, lambda *_: _pass_on(server, signal.SIGCONT))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*PASSED_ON, *PAUSE))
    _call_itself(_number(server))
    _end_like(_number(server))


def _is_accepted(server: socket.socket, script: str) -> bool:
    try:
        paths = os.environ.get("PYTHONPATH", "")
        searched = os.pathsep.join(os.path.abspath(folder) for folder in paths.split(os.pathsep)) if paths else ""
        server.sendall(f"{script}{BETWEEN}{searched}\n".encode("utf-8", "surrogateescape"))
        return server.recv(1) == READY
    except OSError:
        return False


def _has_begun(server: socket.socket, ignored: list[int]) -> bool:
    """Send the job; return whether there is an answer, which is left for `_number`."""
    try:
        _send(server, ignored)
        return len(server.recv(1, socket.MSG_PEEK)) == 1
    except OSError:
        return False


def _number(server: socket.socket) -> int:
    data = b""
    try:
        while len(data) < NUMBER.size and (more := server.recv(NUMBER.size - len(data))):
            data += more
    except OSError:
        data = b""
    if len(data) < NUMBER.size:
        print(
            "a helper process of this run was killed, perhaps because memory ran out; start the same command again",
            file=sys.stderr,
        )
        sys.exit(1)
    return int(NUMBER.unpack(data)[0])


def _call_itself(job: int) -> None:
    try:
        with open("/proc/self/comm", "w") as called:
            called.write(f"{NAMED}{job}")
    except OSError:
        return


def _send(server: socket.socket, ignored: list[int]) -> None:
    """Send the streams, folder, umask, ignored signals and variables of this process."""
    umask = os.umask(0)
    os.umask(umask)
    words = [os.fsencode(os.getcwd()), str(umask).encode(), ",".join(map(str, ignored)).encode()]
    words += [name + b"=" + value for name, value in os.environb.items()]
    content = b"\0".join(words)
    socket.send_fds(server, [NUMBER.pack(len(content))], [0, 1, 2])
    server.sendall(content)


def _pass_on(server: socket.socket, number: int) -> None:
    try:
        server.send(bytes([number]), socket.MSG_DONTWAIT)
    except OSError:
        return


def _stop(server: socket.socket) -> None:
    """Pause the job and this process, at Ctrl-Z."""
    _pass_on(server, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)


def _end_like(code: int) -> None:
    """Exit with the code, or die of the signal that is its negative."""
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
