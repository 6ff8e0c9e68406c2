"""Suggestions for an option that only other commands have."""

from __future__ import annotations

from typing import Any

OUTPUTS = {"-o", "--out", "--output"}
SAME_PURPOSE = (OUTPUTS, {"--from", "--gold-format", "--pred-format"}, {"--to", "--format"}, {"--data", "--gold"})


def suggest_options(error: Any) -> str:
    """Let the error of an unknown option suggest those with the same purpose.

    Return a hint to append to its message if an argument of the command has this purpose.
    """
    unknown, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if unknown is None or context is None:
        return ""
    parameters = context.command.params
    options = {option for parameter in parameters for option in parameter.opts}
    if same := sorted(name for names in SAME_PURPOSE if unknown in names for name in names & options if name.startswith("--")):
        error.possibilities = same
    elif unknown in OUTPUTS:
        arguments = [str(parameter.metavar) for parameter in parameters if parameter.param_type_name == "argument"]
        if output := next((name for name in arguments if name.startswith("OUT")), None):
            error.possibilities = None
            return f"; the output is the argument {output}"
    return ""
