"""The only package that speaks SSH: one connection per node and command, strict about host keys.

`route` and what it uses read ssh's own configuration; `transport` is what others use.
"""

import logging
import sys

# Where invoke is installed paramiko imports it, only to run the command of a `Match exec`, which
# is never asked of it here; not finding it saves a third of the time that paramiko takes to load
_absent = "invoke" not in sys.modules
if _absent:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # None there means: not to be found

from wlctl.host.ssh.connection import fingerprint  # noqa: E402
from wlctl.host.ssh.transport import (  # noqa: E402
    SshChannel,
    SshTransport,
    login_name,
    scan_host_key,
)
from wlctl.host.ssh.way import Credentials  # noqa: E402

if _absent:
    del sys.modules["invoke"]

# What goes wrong is raised here; paramiko's own log would print tracebacks beside it
logging.getLogger("paramiko").addHandler(logging.NullHandler())

__all__ = [
    "Credentials",
    "SshChannel",
    "SshTransport",
    "fingerprint",
    "login_name",
    "scan_host_key",
]
