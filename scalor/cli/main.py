"""`scalor`: the command line. Every command is a module of this package with its name, imported when needed."""

import argparse
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper

from tqdm import tqdm

from scalor.cli.options import parser
from scalor.errors import InputError
from scalor.files import Stopped, stop_signals_raised


def main(words: list[str] | None = None) -> int:
    """Run a command; return 0 for success, 2 for bad input, and 128 + n for a stop by signal n."""
    try:
        open_streams()
        plain, dotted = split_overrides(sys.argv[1:] if words is None else words)
        top = parser()
        arguments, rest = top.parse_known_args(plain)
        rest += dotted
        if rest and arguments.command not in ("train", "fit"):
            raise top.unknown(arguments.command, rest[0])
        with warnings.catch_warnings(), stop_signals_raised():
            warnings.showwarning = lambda message, *_: tqdm.write(f"warning: {message}", file=sys.stderr)
            code = dispatch(arguments, rest)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"scalor: {error}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        print(
            "scalor: not enough memory: ask for less (a smaller --region, fewer --slots, a shorter time, no --masks).",
            file=sys.stderr,
        )
        return 2
    except Stopped as stop:
        print("scalor: stopped; no half-written file is left.", file=sys.stderr)
        return 128 + stop.number
    except KeyboardInterrupt:
        print("scalor: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of stdout has closed it
        discard_stdout()
        return 141
    except OSError as error:
        if error.filename is None:  # most likely stdout itself
            discard_stdout()
        print(f"scalor: {error.filename or 'the output'} cannot be used: {error.strerror}.", file=sys.stderr)
        return 2


def open_streams() -> None:
    """Open the null device in the place of standard streams that are closed; escape what cannot be printed.

    Otherwise printing fails, and the next file that is opened, perhaps a result, receives what libraries print.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(null)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    if isinstance(sys.stdout, TextIOWrapper):  # names of files need not be text
        sys.stdout.reconfigure(errors="backslashreplace")


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory could not be allocated; PyTorch says so by a RuntimeError."""
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)


def discard_stdout() -> None:
    """Redirect stdout to the null device; otherwise Python fails again when it flushes stdout at exit."""
    with suppress(OSError, ValueError):  # no real stdout, nothing to do
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def split_overrides(words: list[str]) -> tuple[list[str], list[str]]:
    """Separate dotted options and their values from all other words, so that they can be given anywhere."""
    plain, dotted = [], []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if not (name.startswith("--") and "." in name):
            plain.append(word)
            continue
        dotted.append(word)
        if not equals and rest and not rest[0].startswith("--"):
            dotted.append(rest.pop(0))
    return plain, dotted


def dispatch(arguments: argparse.Namespace, overrides: list[str]) -> int:
    """Import the module of a command and run it."""
    code: int = import_module(f"scalor.cli.{arguments.command}").run(arguments, overrides)
    return code
