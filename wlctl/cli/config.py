"""`wlctl config`: settings, and who set them."""

import typer

from wlctl import config
from wlctl.cli import render
from wlctl.cli.command import App
from wlctl.cli.options import session_of

app = App("Settings, and who set them.")


@app.command("show")
def show(ctx: typer.Context) -> None:
    """Show every setting, its value, and where that came from."""
    session = session_of(ctx)
    settings = session.settings
    columns: list[render.Column[str]] = [
        render.Column("KEY", "key", config.written),
        render.Column("VALUE", "value", lambda key: config.shown(settings, key)),
        render.Column("ORIGIN", "origin", lambda key: str(settings.origins[key])),
        render.Column("ABOUT", "about", lambda key: str(config.SETTINGS[key]["about"]), wide=True),
    ]
    render.rows(session, "wlctl.config/1", columns, config.SETTINGS)
