"""A job, as Snakemake sees it: it has a node run the script, passes signals on, and ends as the script ends.

    BRAINFED_FORKS=OWNER-WORD job-shell -c COMMAND

Only the standard library, and little of it: this is what a job costs. Without a server it becomes the script itself,
and for any other command than a script of this Python the shell that runs it.

No signal falls between two handlers. Signals are blocked when this program begins, and wait in the system until they
can be passed on, or the script hears them. A script of a job of ours begins with all of them blocked, forked or not,
and takes what has waited when its own handlers stand: its imports would turn an interrupt into errors of their own.
"""

if __name__ == "__main__":  # Before anything else, as an interrupt in an import is printed and forgotten.
    import _signal  # type: ignore[import-not-found]

    _signal.pthread_sigmask(
        _signal.SIG_BLOCK, (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, 10, 12)
    )

import os
import select
import signal
import socket
import struct
import sys
import time

VARIABLE, OFF = "BRAINFED_FORKS", "off"
"""Name of the server, or that jobs start by themselves."""
STARTED_BY = "BRAINFED_STARTED_BY"
"""Variable of a forked job: the process of its client. `runtime.jobs` has it and `PASSED_ON`, too."""
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
TAKES_SIGNALS = b"from brainfed.scripting import job"
"""In the script of a job of ours."""
PATIENCE_S, AGAIN_S, LOOK_S = 5.0, 0.02, 0.1
"""For a server to listen; between two tries; between two looks for a signal while it has not answered."""
LONGEST = 1 << 18
"""Bytes of a message: more than the system sends by default."""
NUMBER = struct.Struct("i")
"""What a node answers: the process of the job, and in the end how it ended."""
NAMED = "job "
"""What this process calls itself, with the number of the process that runs the script (`_shell`)."""


def main() -> None:
    """Run the command."""
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command, name = sys.argv[-1], os.environ.get(VARIABLE, OFF)
    before, script = split_command(command, sys.executable)
    if before or not script:
        _become_bash(command, before, script)
    if None not in (sys.stdin, sys.stdout, sys.stderr) and name != OFF:
        server = _reached(name)
        if server is not None:
            _follow(server, script)
            server.close()
    os.environ.pop(STARTED_BY, None)
    if not takes_signals(script):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
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


def address(name: str) -> str:
    """The abstract address of a server: no file, and gone with the process."""
    return f"\0brainfed-forks-{name}"


def owner_of(name: str) -> str:
    """The process whose end is the end of the server."""
    return name.partition("-")[0]


def is_own(connection: socket.socket) -> bool:
    """Whether the process at the other end is of this user."""
    _process, user, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.getuid())


def _become_bash(command: str, before: str, script: str) -> None:
    """Run a command in bash; a script after other commands comes back to this program."""
    # bash forgets an interrupt where a command of its own does not die of it. Blocked, it waits for this program.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON[1:] if before else PASSED_ON)
    if before:
        from shlex import join, quote  # They take as long to import as the rest.

        again = (sys.executable, "-I", "-S", sys.argv[0], "-c", f"{sys.executable} {quote(script)}")
        command = f"{before}exec {join(again)}"
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would bash's commands.
        signal.signal(number, signal.SIG_DFL)
    os.execvp("bash", ["bash", "-c", f"set -euo pipefail; {command}"])


def _reached(name: str) -> socket.socket | None:
    """A connection to the server, which is started where there is none; None: the job starts by itself."""
    server, end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), 0.0
    while True:
        try:
            server.connect(address(name))
            return server if is_own(server) else None
        except OSError:
            if not end and os.path.exists(f"/proc/{owner_of(name)}") and _start(name):
                end = time.monotonic() + PATIENCE_S
            if time.monotonic() >= end:
                return None
            time.sleep(AGAIN_S)


def _start(name: str) -> bool:
    """Start the server in a session of its own, out of reach of this terminal; return whether that worked.

    A shell starts it and ends, or it would be one of this job's processes for who measures them. Two jobs may start one
    at once; the second finds the address taken, and ends.
    """
    # The threads of a job are set in the job; a process that forks may have one alone, Arrow's allocator included.
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
    alone["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    program = [sys.executable, "-P", "-m", "brainfed.forking.server", name]
    shell = ["sh", "-c", 'exec "$@" </dev/null >/dev/null 2>&1 &', "sh", *program]
    try:
        return os.waitpid(os.posix_spawn("/bin/sh", shell, {**os.environ, **alone}, setsid=True), 0)[1] == 0
    except ChildProcessError:  # SIGCHLD is ignored here.
        return True
    except (OSError, NotImplementedError):
        return False


def _follow(server: socket.socket, script: str) -> None:
    """Have a node run the script, and end as it does; return if it has not begun there."""
    # Ctrl-Z waits, as the others do, until it can be passed on.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
    job = _begun(server, script)
    if not job:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTSTP])
        return
    for number in (*PASSED_ON, signal.SIGTSTP, signal.SIGCONT):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _frame: _pass_on(server, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [*PASSED_ON, signal.SIGTSTP])
    try:
        with open("/proc/self/comm", "w") as called:
            called.write(f"{NAMED}{job}")
    except OSError:
        pass
    code = _answer(server)
    if code is None:
        print(
            "a helper process of this run was killed, perhaps because memory ran out; start the same command again",
            file=sys.stderr,
        )
    _end_like(1 if code is None else code)


def _begun(server: socket.socket, script: str) -> int | None:
    """Send a job: to the server its script and path, to the node its surroundings; return its process, if any."""
    paths = os.environ.get("PYTHONPATH", "")
    umask = os.umask(0)
    os.umask(umask)
    # `nohup` and a shell's background jobs rely on it that a signal stays ignored.
    ignored = ",".join(str(int(number)) for number in PASSED_ON if signal.getsignal(number) == signal.SIG_IGN)
    variables = {**os.environ, STARTED_BY: str(os.getpid())}
    try:
        searched = os.pathsep.join(os.path.abspath(folder) for folder in paths.split(os.pathsep)) if paths else ""
        words = [script, os.getcwd(), str(umask), ignored, *map("=".join, variables.items())]
        server.sendall(os.fsencode(f"{script}\0{searched}"))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        socket.send_fds(server, [os.fsencode("\0".join(words))], [0, 1, 2])
    except OSError:
        return None
    # A server may not answer. A signal that waits is then heard by the script, which this process becomes.
    while not select.select([server], [], [], LOOK_S)[0]:
        if signal.sigpending().intersection(PASSED_ON):
            return None
    return _answer(server)


def _answer(server: socket.socket) -> int | None:
    """The next number from a node; None if there is none any more."""
    for _ in range(2):  # The system tells first, and once, that a signal was not read as the job had ended.
        try:
            answer = server.recv(NUMBER.size)
            return int(NUMBER.unpack(answer)[0]) if answer else None
        except OSError:
            continue
    return None


def _pass_on(server: socket.socket, number: int) -> None:
    """Pass a signal on to the job; at Ctrl-Z, pause it and this process."""
    paused = number == signal.SIGTSTP
    try:
        server.send(bytes([signal.SIGSTOP if paused else number]), socket.MSG_DONTWAIT)
    except OSError:
        pass
    if paused:
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
