"""Send one message to one URL of the notification library: a program of its own.

It is run as a child, so that a service that answers slowly, or never, can be ended. The URL comes
on stdin, since it holds a token and an argv can be read by anybody; nothing is printed.
"""

import json
import sys
from enum import IntEnum


class Sent(IntEnum):
    """How it ended, as an exit status."""

    TOLD = 0
    NOT_INSTALLED = 20
    UNKNOWN_URL = 21
    FAILED = 22


def send(url: str, title: str, body: str) -> Sent:
    """Send it; the library's own bounds hold."""
    try:
        import apprise
    except ImportError:
        return Sent.NOT_INSTALLED
    service = apprise.Apprise(asset=apprise.AppriseAsset(storage_mode="memory"))
    if not service.add(url):
        return Sent.UNKNOWN_URL
    told = service.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
    return Sent.TOLD if told else Sent.FAILED


if __name__ == "__main__":
    sys.exit(send(**json.load(sys.stdin)))
