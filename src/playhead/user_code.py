"""People's own code, imported by name, and errors in it without a traceback."""

from __future__ import annotations

import importlib
import inspect
import operator
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.errors import ConfigError, PlayheadError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["blame", "load_module", "load_object"]

_HERE = Path(__file__).parent


def load_object(name: str, *, kind: str, option: str) -> Any:
    """Import a thing by the name of its module and its name there.

    Parameters
    ----------
    name
        ``module:Name`` or ``package.module:factory``: a class or a function is called without
        arguments, anything else is the thing. The current folder is searched first.
    kind
        What it is, such as `dataset`, for messages.
    option
        The option that names it, for messages.

    Raises
    ------
    ConfigError
        If it cannot be imported or made; the user's file and line are named.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise ConfigError(
            f"{name!r} names no {kind}",
            where=option,
            fix=f"Write module:Name, such as my_code:My{kind.title()}",
        )
    module = load_module(module_name, option)
    try:
        found: Any = operator.attrgetter(attribute)(module)
    except AttributeError:
        raise ConfigError(
            f"the module {module_name} has no {attribute}",
            where=getattr(module, "__file__", None) or module_name,
            fix=f"It has {_offered(module)}",
        ) from None
    if not (inspect.isclass(found) or inspect.isroutine(found)):
        return found
    try:
        made = found()
    except PlayheadError:
        raise
    except Exception as error:
        raise blame(
            error,
            f"the {kind} {name} could not be made",
            fix="Give a class or function that needs no arguments",
        ) from error
    if made is None:
        raise ConfigError(
            f"the function {name} returns None", where=option, fix=f"Return the {kind} from it"
        )
    return made


def blame(error: BaseException, what: str, *, fix: str | None = None) -> ConfigError:
    """Make an error in the user's code one of ours that names the file and the line.

    Parameters
    ----------
    error
        What was raised.
    what
        What did not work because of it.
    fix
        What to do.
    """
    text = str(error).strip()
    # torch adds the traceback of a worker to the text, whose last line is the error's own.
    lines = text.splitlines()[-1:] if "Original Traceback" in text else text.splitlines()[:1]
    reason = ": ".join([type(error).__name__, *lines])
    if isinstance(error, SyntaxError) and error.filename:
        reason = f"{type(error).__name__}: {error.msg}"
        return ConfigError(f"{what}: {reason}", where=f"{error.filename}:{error.lineno}", fix=fix)
    frames = traceback.extract_tb(error.__traceback__)
    return ConfigError(f"{what}: {reason}", where=_culprit(frames), fix=fix)


def _culprit(frames: traceback.StackSummary) -> str | None:
    """The innermost line that is neither ours nor a library's, else the innermost of all."""
    own = [frame for frame in frames if _is_users(frame.filename)] or frames[-1:]
    if not own:
        return None
    return f"{own[-1].filename}:{own[-1].lineno}"


def _is_users(filename: str) -> bool:
    path = Path(filename)
    libraries = {"site-packages", "dist-packages"}
    return not (
        filename.startswith("<")
        or libraries & set(path.parts)
        or _HERE in path.parents
        or Path(os.__file__).parent in path.parents
    )


def load_module(name: str, option: str) -> ModuleType:
    """Import a module of the user's; the current folder is searched first.

    Parameters
    ----------
    name
        Its name, such as `my_data` or `project.types`.
    option
        The option that names it, for messages.

    Raises
    ------
    ConfigError
        If it cannot be imported; the user's file and line are named.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not (name == missing or name.startswith(f"{missing}.")):
            raise blame(
                error, f"the module {name} cannot be imported", fix="Install what it imports"
            ) from error
        raise ConfigError(
            f"there is no module {missing}",
            where=option,
            fix=f"Run this in the folder that holds it, or install it; {here} was searched first",
        ) from None
    except (Exception, SystemExit) as error:
        raise blame(error, f"the module {name} cannot be imported") from error


def _offered(module: ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return ", ".join(names[:10]) or "nothing of its own"
