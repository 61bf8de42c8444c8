"""The one error that users of SCALOR get. Its message names the field, the value and the fix."""


class InputError(ValueError):
    """An error about input that cannot be used. The command line prints the message and exits with code 2."""


def without_extra(doing: str, package: str) -> InputError:
    """Return the error for a missing optional package."""
    return InputError(f"{doing} needs the package {package}: run pip install 'scalor[video]'.")
