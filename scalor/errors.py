"""The one error a user of SCALOR meets: a sentence that names the field, the value and the fix."""


class InputError(ValueError):
    """Something handed in from outside cannot be used. The command line prints it and exits with code 2."""


def without_extra(doing: str, package: str) -> InputError:
    """The error for a missing optional package."""
    return InputError(f"{doing} needs the package {package}: run pip install 'scalor[video]'.")
