"""Which value each setting has, and who said so: flag, environment, file or default."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wlctl.config import alerting, files, secrets, values
from wlctl.config.alerting import Alerting
from wlctl.config.secrets import SecretSource
from wlctl.config.values import Parse
from wlctl.errors import InvalidFile, NoHome, UsageError

PROJECT_FILE = "wlctl.toml"
SYSTEM_FILE = Path("/etc/wlctl/config.toml")
LOCKED = "locked"
"""The table of the system file whose values nothing else changes."""
TABLES = ("place", "weights")
"""Tables of a file; `x` below `[place]` is the setting `place_x`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value.

    Attributes:
        where: `flag --db`, the name of the variable, the path of the file, or `default`.
        locked: It stands in `[locked]` of the system file.
    """

    where: str
    locked: bool = False

    def __str__(self) -> str:
        return f"{self.where} [{LOCKED}]" if self.locked else self.where


DEFAULT = Origin("default")


def _setting(
    parse: Parse,
    default: object,
    about: str,
    *,
    in_file: Parse | None = None,
    project: bool = False,
) -> Any:
    """Declare one setting: how it is read, and who may set it.

    Args:
        parse: Raises ValueError with what to say instead.
        default: None where it has to be worked out.
        about: What it is, in a few words.
        in_file: How it is read from a file, where that differs.
        project: A project file may set it too.
    """
    return field(
        default=default,
        metadata={
            "parse": parse,
            "about": about,
            "in_file": in_file or parse,
            "project": project,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting there is, one line each; the environment twin of `x` is `WLCTL_X`.

    In files and output, `place_x` is written `place.x`, or `x` below `[place]`.

    Attributes:
        db: URL of the ledger, or the absolute path of its file.
        origins: Who set each of the others, by name.
        secrets: Where the values of secrets are, by name.
        alerts: Whom alerts are told to.
    """

    db: str = _setting(
        values.ledger, None, "the ledger: a path or a URL", in_file=values.ledger_in_file
    )
    output: str = _setting(values.output, "table", "how answers are printed", project=True)
    no_color: bool = _setting(values.boolean, False, "no colour in output")
    busy_timeout_s: float = _setting(
        values.seconds(0, 3600), 30.0, "how long to wait for another command on the same thing"
    )
    facts_ttl_s: float = _setting(
        values.seconds(1, 86400), 900.0, "how long facts of a node may be decided from"
    )
    reconcile_interval_s: float = _setting(
        values.seconds(1, 86400), 60.0, "how often `reconcile` runs; no lease may be shorter than 3"
    )
    dead_after_s: float = _setting(
        values.seconds(1, 86400), 90.0, "how long a node may be silent before it counts as dead"
    )
    max_moves_per_pass: int = _setting(
        values.count(0, 10_000), 10, "how many lost copies one pass of `reconcile` places anew"
    )
    connect_timeout_s: float = _setting(
        values.seconds(0.1, 600), 10.0, "how long a node may take to accept a connection"
    )
    place_pin: str = _setting(values.node, "", "the node to place on, or none", project=True)
    place_prefer: tuple[str, ...] = _setting(values.nodes, (), "nodes that are liked", project=True)
    place_avoid: tuple[str, ...] = _setting(values.nodes, (), "nodes that come last", project=True)
    weights_native: float = _setting(
        values.weight, 100.0, "what counts in a score: running natively"
    )
    weights_emulated: float = _setting(
        values.weight, 40.0, "what counts in a score: running emulated"
    )
    weights_dev_fallback: float = _setting(
        values.weight, 20.0, "what counts in a score: a machine of last resort"
    )
    weights_accel_fit: float = _setting(
        values.weight, 10.0, "what counts in a score: an accelerator that is no larger than needed"
    )
    weights_perf: float = _setting(
        values.weight, 30.0, "what counts in a score: measured performance"
    )
    weights_interactive_factor: float = _setting(
        values.weight, 2.0, "what counts in a score: performance, times this when interactive"
    )
    weights_load: float = _setting(values.weight, 10.0, "what counts in a score: an idle node")
    weights_room: float = _setting(
        values.weight, 10.0, "what counts in a score: a node with room left"
    )
    weights_spread: float = _setting(
        values.weight, 10.0, "what counts in a score: a node without copies of the workload"
    )
    weights_stickiness: float = _setting(
        values.weight, 15.0, "what counts in a score: the node that a copy is on"
    )
    weights_sticky: float = _setting(
        values.weight, 1000.0, "what counts in a score: the same, for a workload that is sticky"
    )
    weights_dev_class: str = _setting(
        values.capability, "node.class.dev", "what marks a machine of last resort"
    )
    origins: Mapping[str, Origin] = field(default_factory=dict)
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)
    alerts: Alerting = field(default_factory=Alerting)


SETTINGS = {item.name: item.metadata for item in fields(Settings) if item.metadata}


@dataclass(frozen=True, slots=True)
class Places:
    """Where files of this user and machine lie.

    Attributes:
        user_file: None without a home directory.
        data_dir: The ledger's default directory; None without a home directory.
        project_file: Relative to the working directory; None where none may be read.
    """

    user_file: Path | None
    data_dir: Path | None
    system_file: Path = SYSTEM_FILE
    project_file: Path | None = Path(PROJECT_FILE)

    @classmethod
    def of_this_process(cls) -> "Places":
        """Find them by HOME, the passwd entry and the XDG variables; never a relative path."""
        if not values.home_is_sound():
            return cls(user_file=None, data_dir=None)
        try:
            config_dir, data_dir = _user_dirs()
        except RuntimeError:  # neither HOME nor a passwd entry
            return cls(user_file=None, data_dir=None)
        return cls(
            user_file=config_dir / "config.toml" if config_dir.is_absolute() else None,
            data_dir=data_dir if data_dir.is_absolute() else None,
        )


def _user_dirs() -> tuple[Path, Path]:
    """Find where settings and data of a user belong.

    Raises:
        RuntimeError: There is neither HOME nor a passwd entry.
    """
    if sys.platform == "darwin":
        import platformdirs

        return (
            platformdirs.user_config_path("wlctl", appauthor=False),
            platformdirs.user_data_path("wlctl", appauthor=False),
        )
    # everywhere else by two variables, for which every command would have to load a library
    return _xdg("XDG_CONFIG_HOME", ".config"), _xdg("XDG_DATA_HOME", ".local/share")


def _xdg(variable: str, usual: str) -> Path:
    """Give the directory that a variable names; a relative path is passed over.

    Source: XDG Base Directory Specification.
    """
    told = os.environ.get(variable, "")
    return (Path(told) if told.startswith("/") else Path.home() / usual) / "wlctl"


def load(flags: Mapping[str, object], environ: Mapping[str, str], places: Places) -> Settings:
    """Settle every setting: lock, flag, twin, project file, user file, system file, default.

    Args:
        flags: What the command line gave, by name of the setting; absent means not given.
        environ: Absent and empty mean not given.
        places: Where the files are; a missing one is empty.

    Raises:
        InvalidFile: A file sets what it may not, or cannot be read as one.
        NoHome: No ledger was named and there is no home directory to look in.
        UsageError: A flag or a variable has no value of its kind, or a flag meets a lock.
    """
    system = files.read(places.system_file)
    locked = _table(places.system_file, LOCKED, system.pop(LOCKED, {}))
    project = files.read_project(places.project_file)
    user = files.read(places.user_file)
    named = {
        **secrets.read(places.system_file, _taken(places.system_file, secrets.TABLE, system)),
        **secrets.read(places.user_file, _taken(places.user_file, secrets.TABLE, user)),
    }
    told = alerting.over(
        alerting.read(places.system_file, _taken(places.system_file, alerting.TABLE, system)),
        alerting.read(places.user_file, _taken(places.user_file, alerting.TABLE, user)),
    )
    found: dict[str, tuple[object, Origin]] = {}
    _add(found, _from_file(system, places.system_file))
    _add(found, _from_file(user, places.user_file))
    _add(found, _from_file(project, places.project_file, project=True))
    _add(found, _from_environment(environ))
    _add(found, _from_flags(flags))
    for key, value, origin in _from_file(locked, places.system_file, locked=True):
        said, by = found.get(key, (value, origin))
        if said != value and key in flags:
            raise UsageError(
                f"{by} asks for {said}, but {origin} holds {key} at {value}",
                hint="leave the flag out",
            )
        found[key] = (value, origin)
    return replace(_settled(found, places), secrets=named, alerts=told)


def _taken(path: Path | None, name: str, file: dict[str, object]) -> dict[str, object]:
    return _table(path, name, file.pop(name, {}))


def written(key: str) -> str:
    """Give the name of a setting as files and output have it."""
    table, _, rest = key.partition("_")
    return f"{table}.{rest}" if table in TABLES else key


def shown(settings: Settings, key: str) -> str | float | bool | tuple[str, ...]:
    """Give the value of one setting, fit to be shown."""
    value: str | float | bool | tuple[str, ...] = getattr(settings, key)
    return masked(value) if isinstance(value, str) else value


def masked(location: str) -> str:
    """Give a ledger's location without its password, fit to be shown."""
    if "://" not in location:
        return location
    import re

    shown = re.sub(r"(?<=://)([^/@:]*):[^/]*@", r"\1:…@", location)
    return re.sub(r"(?i)((?:^|[?&])[a-z]*password=)[^&#]*", r"\1…", shown)


Found = Iterator[tuple[str, object, Origin]]


def _add(found: dict[str, tuple[object, Origin]], more: Found) -> None:
    found.update({key: (value, origin) for key, value, origin in more})


def _settled(found: Mapping[str, tuple[object, Origin]], places: Places) -> Settings:
    values = {key: value for key, (value, _) in found.items()}
    if "db" not in values:
        if places.data_dir is None:
            raise NoHome(
                "no ledger was named and there is no home directory to look for one in",
                hint="give --db or WLCTL_DB, or set HOME (and XDG_DATA_HOME) to an absolute path",
            )
        values["db"] = str(places.data_dir / "ledger.db")
    origins = {key: found[key][1] if key in found else DEFAULT for key in SETTINGS}
    return Settings(**values, origins=origins)  # type: ignore[arg-type]  # each was parsed


def _from_flags(flags: Mapping[str, object]) -> Found:
    for key, said in flags.items():
        origin = Origin(f"--{key.replace('_', '-')}")
        try:
            yield key, SETTINGS[key]["parse"](said), origin
        except ValueError as error:
            raise UsageError(f"{origin} cannot be {said!r}", hint=str(error)) from None


def _from_environment(environ: Mapping[str, str]) -> Found:
    if environ.get("NO_COLOR"):
        yield "no_color", True, Origin("NO_COLOR")
    for key, setting in SETTINGS.items():
        name = f"WLCTL_{key.upper()}"
        said = environ.get(name)
        if not said:
            continue
        try:
            yield key, setting["parse"](said), Origin(name)
        except ValueError as error:
            raise UsageError(f"{name} cannot be {said!r}", hint=str(error)) from None


def _from_file(
    table: Mapping[str, object], path: Path | None, *, project: bool = False, locked: bool = False
) -> Found:
    for name, said in _flat(table, path):
        key = _key_of(name, path, project=project)
        try:
            yield key, SETTINGS[key]["in_file"](said), Origin(str(path), locked)
        except ValueError as error:
            raise InvalidFile(f"{path}: {name} cannot be {said!r}", hint=str(error)) from None


def _flat(table: Mapping[str, object], path: Path | None) -> Iterator[tuple[str, object]]:
    """Give what a file says, `x` below `[place]` as `place.x`."""
    for name, said in table.items():
        if name in TABLES:
            yield from ((f"{name}.{key}", value) for key, value in _table(path, name, said).items())
        else:
            yield name, said


def _key_of(name: str, path: Path | None, *, project: bool) -> str:
    known = {written(key): key for key in SETTINGS}
    allowed = [each for each, key in known.items() if SETTINGS[key]["project"] or not project]
    if name in allowed:
        return known[name]
    if name in known:
        raise InvalidFile(
            f"{path}: a project file may not set {name}",
            hint=f"it may set {', '.join(allowed)}; move {name} to your own config.toml",
        )
    tables = () if project else (f"[{alerting.TABLE}]", f"[{secrets.TABLE}]")
    allowed += tables
    near = get_close_matches(name, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it may set {', '.join(allowed)}"
    raise InvalidFile(f"{path}: there is no setting {name}", hint=hint)


def _table(path: Path | None, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidFile(f"{path}: {name} is a table", hint=f"write [{name}] on a line")
    return value
