"""`scalor`: the command line. Every command is a module beside this one, named after it and imported when needed."""

import argparse
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module

from tqdm import tqdm

from scalor.cli.options import parser
from scalor.errors import InputError


def main(words: list[str] | None = None) -> int:
    """Run a command; 0 is success, 2 bad input, 128 + n a stop by signal n."""
    try:
        plain, dotted = split_overrides(sys.argv[1:] if words is None else words)
        arguments, rest = parser().parse_known_args(plain)
        rest += dotted
        if rest and arguments.command not in ("train", "fit"):
            raise InputError(f"argument {rest[0]!r} is unknown; see `scalor {arguments.command} --help`.")
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: tqdm.write(f"warning: {message}", file=sys.stderr)
            code = dispatch(arguments, rest)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"scalor: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("scalor: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads has seen enough
        silence()
        return 141
    except OSError as error:
        if error.filename is None:  # most likely stdout itself
            silence()
        print(f"scalor: {error.filename or 'the output'} cannot be used: {error.strerror}.", file=sys.stderr)
        return 2


def silence() -> None:
    """What is still to be printed goes nowhere: Python would fail over it once more when it ends."""
    with suppress(OSError, ValueError):  # no real stdout, nothing to do
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def split_overrides(words: list[str]) -> tuple[list[str], list[str]]:
    """Dotted options and their values apart from the rest, so that they may stand anywhere."""
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
    """Run a command: each is a module of this package, named after it."""
    code: int = import_module(f"scalor.cli.{arguments.command}").run(arguments, overrides)
    return code
