"""SIGINT, SIGTERM and a closed pipe, the same for every script: a handler notes the signal, loops look at it.

A handler that raises does so anywhere, within a lock of subprocess and while logs are being deleted: then the script
hangs, or its logs stay. Here the exception is raised by `check` alone, which every loop that waits calls (run_child of
child.py, above all), so that `with` and `finally` end what was started. A script's entry is

    if __name__ == "__main__":
        stop.install()      # before the imports that take long
    ...
        stop.run(main)
"""
from __future__ import annotations

import os
import signal
import sys
from typing import Callable, NoReturn

STATUS_OF_SIGNAL = 128  # as shells say it: 130 after SIGINT, 143 after SIGTERM

_number = 0  # of the first signal


class Stopped(BaseException):
    """The script is to end. Like KeyboardInterrupt it is no Exception, which other code may catch."""


def _note(number: int, _frame) -> None:
    global _number
    _number = _number or number


def install() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, _note)


def requested() -> bool:
    return _number != 0


def name() -> str:
    """Of the signal."""
    return signal.Signals(_number).name if _number else ""


def check() -> None:
    if _number:
        raise Stopped


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Calls main(arguments) and exits with its status, or with that of the signal."""
    install()
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
    except Stopped:
        status = 0
    except BrokenPipeError:
        # The reader of standard output has closed it. Text that is still buffered must not fail again on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = STATUS_OF_SIGNAL + signal.SIGPIPE
    sys.exit(status_of(status))


def status_of(status: int) -> int:
    """That of the signal, where nothing went wrong before it."""
    return status or (STATUS_OF_SIGNAL + _number if _number else 0)
