"""`wlctl config`: settings, and who set them."""

from collections.abc import Iterator
from typing import NamedTuple

import typer

from wlctl import config
from wlctl.cli import render
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.config import Settings, alerting, secrets
from wlctl.config.alerting import Alerting
from wlctl.config.secrets import SecretSource
from wlctl.model.event import Json

app = App("Settings, and who set them.")


@app.command("show")
def show(ctx: typer.Context) -> None:
    """Show every setting, its value, and where that came from.

    Of secrets, and of what holds one, it shows where the value is got, never the value.
    """
    session = session_of(ctx)
    columns: list[render.Column[Line]] = [
        render.Column("KEY", "key", lambda line: line.key),
        render.Column("VALUE", "value", lambda line: line.value),
        render.Column("ORIGIN", "origin", lambda line: line.origin),
        render.Column("ABOUT", "about", lambda line: line.about, wide=True),
    ]
    render.rows(session, "wlctl.config/1", columns, _lines(session.settings))


class Line(NamedTuple):
    """One setting as it is shown."""

    key: str
    value: Json
    origin: str
    about: str


def _lines(settings: Settings) -> Iterator[Line]:
    for key, setting in config.SETTINGS.items():
        origin, about = str(settings.origins[key]), str(setting["about"])
        yield Line(config.written(key), config.shown(settings, key), origin, about)
    yield from _alerts(settings.alerts)
    for name, source in settings.secrets.items():
        yield Line(f"{secrets.TABLE}.{name}", _got(source), source.where, "where a secret is got")


def _alerts(told: Alerting) -> Iterator[Line]:
    for name, value, about in (
        (alerting.COMMAND, _program(told.command), "the program that alerts are told to"),
        (alerting.CLOSED, told.tells_closed, "whether it is told, too, when they are over"),
    ):
        origin = told.origins.get(name, str(config.DEFAULT))
        yield Line(f"{alerting.TABLE}.{name}", value, origin, about)
    for name, source in told.urls.items():
        key, about = f"{alerting.TABLE}.{alerting.URLS}.{name}", "a URL that alerts are told to"
        yield Line(key, _got(source), source.where, about)


def _got(source: SecretSource) -> str:
    if source.env:
        return f"variable {source.env}"
    return f"file {source.file}" if source.file else f"command {_program(source.command)}"


def _program(command: tuple[str, ...]) -> str:
    """Name a program; its arguments are for it, and somebody may have put a token there."""
    return " ".join([*command[:1], *["…"] * (len(command) > 1)])
