"""The only package that speaks SSH: one connection per node and command, strict about host keys.

`route` and what it uses read ssh's own configuration; `transport` is what others use.
"""

import logging

from wlctl.host.ssh.connection import fingerprint
from wlctl.host.ssh.transport import Credentials, SshChannel, SshTransport, scan_host_key

# What goes wrong is raised here; paramiko's own log would print tracebacks beside it
logging.getLogger("paramiko").addHandler(logging.NullHandler())

__all__ = ["Credentials", "SshChannel", "SshTransport", "fingerprint", "scan_host_key"]
