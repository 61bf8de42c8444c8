"""`scalor`: the command line. Every command is a module of this package with its name, imported when needed."""

import argparse
import sys
import warnings
from contextlib import redirect_stdout
from importlib import import_module

from tqdm import tqdm

from scalor.cli.options import parser
from scalor.cli.streams import PlainText, discard_stdout, one_line, open_streams
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
        with warnings.catch_warnings(), stop_signals_raised(), redirect_stdout(PlainText(sys.stdout)):
            warnings.showwarning = lambda message, *_: tqdm.write(f"warning: {one_line(message)}", file=sys.stderr)
            code = dispatch(arguments, rest)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"scalor: {one_line(error)}", file=sys.stderr)
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
        print(f"scalor: {one_line(error.filename or 'the output')} cannot be used: {error.strerror}.", file=sys.stderr)
        return 2


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory could not be allocated; PyTorch says so by a RuntimeError."""
    return isinstance(error, MemoryError) or "out of memory" in str(error) or "can't allocate memory" in str(error)


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
