"""The parser of the command line: errors of one sentence, hints for mistyped words, and the help of settings."""

import argparse
import difflib
import json
import re
from typing import NoReturn, TypeAlias

from scalor import __version__
from scalor.errors import InputError
from scalor.provenance import commit


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `InputError` with a message of one sentence."""

    commands: "Commands | None" = None
    """The commands, if this is the parser of all of them."""

    def error(self, message: str) -> NoReturn:
        """Raise an InputError with a message of argparse."""
        wrong = re.match(r"argument COMMAND: invalid choice: '(.*?)' \(", message)
        if wrong and self.commands is not None:
            word = wrong[1]
            near = difflib.get_close_matches(word, self.commands.choices, n=1)
            hint = f"did you mean {near[0]}" if near else f"see `{self.prog} --help`"
            raise InputError(f"command is {word!r}: there is no such command; {hint}.")
        raise InputError(f"{message}; see `{self.prog} --help`.")

    def unknown(self, command: str, word: str) -> InputError:
        """Return the error for a word that a command does not know."""
        page = f"scalor {command} --help"
        name = word.partition("=")[0]
        known = self.commands.choices[command].format_help() if self.commands else ""
        near = difflib.get_close_matches(name, re.findall(r"--[a-z][a-z-]*", known), n=1)
        hint = f"; did you mean {near[0]} (`{page}` lists all)" if near and near[0] != name else f"; see `{page}`"
        return InputError(f"argument {word!r} is unknown{hint}.")


class HelpAll(argparse.Action):
    """An option that prints the help with all settings, and ends the program."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        """Print the help and end."""
        parser.epilog = settings_help(str(self.const))
        parser.print_help()
        parser.exit()


class Version(argparse.Action):
    """An option that prints the version and the commit, and ends the program."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        """Print the version and end."""
        print(f"scalor {__version__} (commit {commit()})")
        parser.exit()


class Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """A help formatter that omits empty defaults and keeps the line breaks of the list of settings."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        says_nothing = action.default is None or action.default is False or action.default == []
        return action.help if says_nothing else super()._get_help_string(action)


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
"""Return type of `add_subparsers`, which has no public name."""


def command(commands: Commands, name: str, help: str, *, weights: str | None = None, out: str | None = None) -> Parser:
    """Add a command with the options that several commands share; return its parser."""
    sub: Parser = commands.add_parser(name, help=help, description=help, allow_abbrev=False, formatter_class=Help)
    sub.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    if weights:
        sub.add_argument("--weights", default=weights, help="shipped name, run folder or .safetensors file")
    if out:
        sub.add_argument("--out", default=out, help="folder to write to")
    if weights or name in ("train", "fit", "evaluate", "reproduce"):
        sub.add_argument("--device", default="auto", help="auto, cpu or cuda")
    return sub


def add_help_all(sub: Parser, note: str) -> None:
    """Let a command take settings by their dotted names; `--help-all` lists them, under a note on the defaults."""
    sub.add_argument("--help-all", action=HelpAll, nargs=0, const=note, help="show this page with all settings")
    sub.epilog = "Any setting can be given by its dotted name, such as --train.batch 8; --help-all lists them."


def settings_help(note: str) -> str:
    """Return the list of all settings with defaults and meanings, under a note on the defaults."""
    from scalor.config import Config
    from scalor.settings import fields_of

    lines = [f"settings ({note}):"]
    for name, field in fields_of(Config()).items():
        allowed = str(field.metadata["range"])
        limits = f" ({allowed})" if allowed and not field.metadata["range"].choices else ""
        lines.append(f"  --{name} {json.dumps(field.default)}\n      {field.metadata['help']}{limits}")
    return "\n".join(lines)
