"""The one error that users of SCALOR get. Its message names the field, the value and the fix."""

MOST_SHOWN = 200
"""Largest number of characters of a value that a message shows."""


class InputError(ValueError):
    """An error about input that cannot be used. The command line prints the message and exits with code 2."""


def require(holds: bool, field: str, value: object, fix: str) -> None:
    """Raise InputError unless `holds` is true. All errors about settings have this form: field, value, fix."""
    if not holds:
        raise InputError(f"{field} is {shown(value)}: {fix}.")


def shown(value: object) -> str:
    """Return a value as text of limited length."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def without_extra(doing: str, package: str) -> InputError:
    """Return the error for a missing optional package."""
    return InputError(f"{doing} needs the package {package}: run pip install 'scalor[video]'.")
