"""Every failure a user can meet, with its stable code, its exit code and what to do.

The docstring of a leaf is what `wlctl help CODE` prints: it says what happened in general and what
to do about it. The message and the hint of a raised error say it for the case at hand.
"""

from collections.abc import Iterable
from enum import IntEnum
from itertools import islice
from typing import ClassVar

NAMES_COMPARED = 1000
"""With more there are, whoever mistyped a name waits longer than the hint is worth."""


class ExitCode(IntEnum):
    """What a script may rely on; the same for every command, never non-zero for success."""

    DONE = 0
    """Done, nothing to do, or placeable."""
    FAILED = 1
    """It was tried and it failed."""
    USAGE = 2
    """A wrong option, argument or file."""
    CANNOT_PLACE = 3
    """No node can take the workload."""
    REFUSED = 4
    """Refused by gate, signature, revocation, an illegal step, or a key spent or mismatched."""
    INDETERMINATE = 5
    """Indeterminate or unproven: nobody knows; type the same command again, or unload it."""
    BUSY = 6
    """Another operation holds what this one needs."""
    PARTIAL = 7
    """Part of it was done, or reconcile raised a new alert."""
    MOVED = 8
    """The state moved since the plan was made."""
    UNREACHABLE = 9
    """Nothing was done on the node; a recorded wish is said."""
    CHANGES_PENDING = 10
    """Changes are pending (only with `--detailed-exitcode`)."""
    LEDGER = 11
    """The ledger is damaged, rolled back or of another version."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C; what was settled is said."""


class WlctlError(Exception):
    """A failure a user can act on: what happened, and what to do.

    Args:
        message: One sentence without a full stop, naming the thing that failed. Text that came from
            outside is escaped where it is shown, not here.
        hint: What to run or change next; None where the code's own help says all.
    """

    code: ClassVar[str]
    exit_code: ClassVar[ExitCode]

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WlctlError):
    """An option, argument or combination of them is not one the command takes."""

    code = "usage"
    exit_code = ExitCode.USAGE


class InvalidFile(WlctlError):
    """A file given to the command cannot be read or does not say what it must; nothing changed."""

    code = "invalid-file"
    exit_code = ExitCode.USAGE


class InvalidRequest(WlctlError):
    """A request cannot be decided: a value is not what it must be, or a limit is exceeded.

    The message names its path and what was expected; nothing was decided.
    """

    code = "invalid-request"
    exit_code = ExitCode.USAGE


class UnknownName(WlctlError):
    """No node, instance, package or signer has this name; `ls` of its kind lists what there is."""

    code = "unknown-name"
    exit_code = ExitCode.USAGE

    @classmethod
    def among(cls, known: Iterable[str], word: str, said: str, *, hint: str) -> "UnknownName":
        """Say it, and which of the names that are known was probably meant."""
        from difflib import get_close_matches  # for those few who mistype

        near = get_close_matches(word, islice(known, NAMES_COMPARED), n=1)
        return cls(said, hint=f"did you mean {near[0]}? {hint}" if near else hint)


class AmbiguousName(WlctlError):
    """A shortened name or id fits more than one thing; the matches are listed: write more of it."""

    code = "ambiguous-name"
    exit_code = ExitCode.USAGE


class NeedsTerminal(WlctlError):
    """A question has to be answered and there is no terminal; pass the flag that is named."""

    code = "needs-terminal"
    exit_code = ExitCode.USAGE


class Declined(WlctlError):
    """The question was answered with no; nothing was done."""

    code = "declined"
    exit_code = ExitCode.FAILED


class NoHome(WlctlError):
    """A file of yours is needed and there is no home directory to look for it in.

    HOME is unset or not an absolute path and the passwd entry names none either (a cron job or a
    service often has it so). Name the ledger with `--db` or `WLCTL_DB`.
    """

    code = "no-home"
    exit_code = ExitCode.USAGE


class OutputFailed(WlctlError):
    """The answer could not be written to stdout; what the command did is done all the same.

    Give the disk some room, or send stdout elsewhere, and ask again: reading changes nothing, and
    every verb is safe to repeat.
    """

    code = "output-failed"
    exit_code = ExitCode.FAILED


class Interrupted(WlctlError):
    """Ctrl-C ended the command; whatever it was in the middle of, the next command takes over."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED


class InternalError(WlctlError):
    """wlctl met something it did not expect: a bug. `--debug` shows where; please report that."""

    code = "internal-error"
    exit_code = ExitCode.FAILED


class ManifestInvalid(WlctlError):
    """A package's manifest is missing or not what `package build` writes; build the package again.

    It must be a regular file of at most 1 MiB, canonical JSON, with every field there is and no
    other, and its launch sheets must say what it says.
    """

    code = "manifest-invalid"
    exit_code = ExitCode.USAGE


class UnknownKind(WlctlError):
    """A package is of a kind this wlctl does not know; a newer one may: nothing was done."""

    code = "unknown-kind"
    exit_code = ExitCode.USAGE


class FileMissing(WlctlError):
    """A file that the manifest lists is not in the package; bring it back or build again."""

    code = "file-missing"
    exit_code = ExitCode.USAGE


class FileTampered(WlctlError):
    """A file is not what the manifest states: other bytes, another size or mode, or no plain file.

    Nothing of the package was used. If the change was meant, build and sign the package again; if
    not, find out who made it.
    """

    code = "file-tampered"
    exit_code = ExitCode.REFUSED


class MissingSignature(WlctlError):
    """A package carries no signature; sign it with `wlctl package sign DIR --key FILE`."""

    code = "missing-signature"
    exit_code = ExitCode.REFUSED


class UntrustedSigner(WlctlError):
    """No accepted signer signed it; `wlctl signer add` accepts a key, once you have checked it."""

    code = "untrusted-signer"
    exit_code = ExitCode.REFUSED


class BadSignature(WlctlError):
    """A signature does not fit what it is said to sign, or cannot be read as one.

    Either the package was built again after it was signed, or somebody changed it: a signature by
    a known key that does not fit is never passed over. Remove the file and sign again.
    """

    code = "bad-signature"
    exit_code = ExitCode.REFUSED


class RevokedSigner(WlctlError):
    """Only revoked keys signed it; have it checked and signed with a key that is accepted."""

    code = "revoked-signer"
    exit_code = ExitCode.REFUSED


class Revoked(WlctlError):
    """The package, or a file in it, is revoked: it is not started any more, whoever signed it.

    `wlctl revocations` lists what is, and why. Take what replaces it; what was revoked by mistake
    comes back with `wlctl unrevoke`.
    """

    code = "revoked"
    exit_code = ExitCode.REFUSED


class FilesUnreadable(WlctlError):
    """Reading a package or writing the store failed: permissions, a full disk, or a broken one."""

    code = "io-error"
    exit_code = ExitCode.FAILED


class UnsafeKey(WlctlError):
    """A key file can be read or changed by others, so it proves nothing; `chmod` it and repeat."""

    code = "unsafe-key"
    exit_code = ExitCode.USAGE


class UnusableKey(WlctlError):
    """A key file cannot be used here: another format or type, or it is under a passphrase."""

    code = "unusable-key"
    exit_code = ExitCode.USAGE


class AgentFailed(WlctlError):
    """The ssh-agent is not there, did not answer in time, or refused to sign.

    `ssh-add -l` shows whether it is there and what it keeps; a token wants to be touched, and a key
    that was added with `ssh-add -c` to be confirmed. Nothing was signed.
    """

    code = "agent-failed"
    exit_code = ExitCode.FAILED


class SignerConflict(WlctlError):
    """The signer's name or key is already in use: one key has one name, and one name one key."""

    code = "signer-conflict"
    exit_code = ExitCode.REFUSED


class GateDenied(WlctlError):
    """The policy does not allow it: a rule denies it, or no permit allows it.

    The rule that decided is named, and is in the chain. `wlctl policy show` prints the policy in
    force; whoever may change it can permit more with `wlctl policy apply`.
    """

    code = "gate-denied"
    exit_code = ExitCode.REFUSED


class GateDeferred(WlctlError):
    """What was asked could do so much that the policy wants an approver to agree first.

    Give the id that is shown to somebody the policy names as approver, who runs
    `wlctl approve ID --key FILE`. Then repeat the command within a day; an approval is good once.
    """

    code = "gate-deferred"
    exit_code = ExitCode.REFUSED


class ApprovalRefused(WlctlError):
    """An approval does not count: by nobody the policy names, by who asked, too late, or unfit."""

    code = "approval-refused"
    exit_code = ExitCode.REFUSED


class PolicyLocksOut(WlctlError):
    """Under that policy nobody could ever put another one in force; the one in force stays.

    Give some login a permit with the action `policy.apply`, and no deny that names it.
    """

    code = "policy-locks-out"
    exit_code = ExitCode.REFUSED


class NoLedger(WlctlError):
    """There is no ledger at this path. Only `wlctl init` makes one; `--db` says where it is."""

    code = "no-ledger"
    exit_code = ExitCode.USAGE


class LedgerExists(WlctlError):
    """A ledger is to be made where something already is; nothing is ever written over."""

    code = "ledger-exists"
    exit_code = ExitCode.USAGE


class NotALedger(WlctlError):
    """What is at the ledger's path is not a ledger of wlctl; it was left as it is."""

    code = "not-a-ledger"
    exit_code = ExitCode.USAGE


class LedgerPermissions(WlctlError):
    """Others may read or write the ledger, or we may not; give it to its owner alone, mode 0600.

    The directory must be writable too: SQLite keeps its journal beside the ledger.
    """

    code = "ledger-permissions"
    exit_code = ExitCode.USAGE


class LedgerOnNetwork(WlctlError):
    """The ledger lies on a file system of several machines, where SQLite's locks do not hold.

    Put it on a local disk. Several machines share a ledger through PostgreSQL.
    """

    code = "ledger-on-network"
    exit_code = ExitCode.USAGE


class LedgerBusy(WlctlError):
    """Another process held the ledger's write lock all the time; the command is safe to repeat."""

    code = "ledger-busy"
    exit_code = ExitCode.BUSY


class Busy(WlctlError):
    """Another operation is under way on what this one needs: one at a time on an instance.

    The holder is named. When its process is gone, the next command takes over by itself.
    """

    code = "busy"
    exit_code = ExitCode.BUSY


class Overtaken(WlctlError):
    """This process was so late that another one took its operation over; it wrote nothing more.

    The other process settles what was begun here: `wlctl audit log` tells how it ended.
    """

    code = "overtaken"
    exit_code = ExitCode.BUSY


class LedgerDiskFull(WlctlError):
    """The disk below the ledger is full. The transaction left no trace: make room and repeat."""

    code = "ledger-disk-full"
    exit_code = ExitCode.FAILED


class LedgerUnwritten(WlctlError):
    """The disk below the ledger failed. Check the disk, then run `wlctl ledger check`."""

    code = "ledger-io"
    exit_code = ExitCode.FAILED


class LedgerDamaged(WlctlError):
    """The ledger's file is damaged, or its chain does not hold.

    Keep the file as it is for evidence, and put a backup in its place: `ledger.db.backup-…` beside
    it, or one made by `wlctl ledger backup`.
    """

    code = "ledger-damaged"
    exit_code = ExitCode.LEDGER


class ChainBroken(WlctlError):
    """The chain was changed after it was written, or a row is not what its event tells.

    The first event that is wrong, missing or disagreed with is named. Keep the ledger as it is for
    evidence; a checkpoint or a backup that was kept elsewhere says what was there before.
    """

    code = "chain-broken"
    exit_code = ExitCode.LEDGER


class LedgerRolledBack(WlctlError):
    """The ledger is older than what its nodes were told: a backup, or a copy used elsewhere since.

    What happened since is not known to it, so only stop, unload, cordon and revoke are
    done until `wlctl ledger rebuild` has asked the nodes.
    """

    code = "ledger-rolled-back"
    exit_code = ExitCode.LEDGER


class LedgerForked(WlctlError):
    """A node was told another event in the place of one here: this is one of two copies in use.

    Or it is an old one that went on. Keep one of them, and take the other away. In the one that is
    kept `wlctl ledger rebuild` asks the nodes what the other one did; until then only stop, unload,
    cordon and revoke are done.
    """

    code = "ledger-forked"
    exit_code = ExitCode.LEDGER


class LedgerNewer(WlctlError):
    """A newer wlctl has migrated the ledger; this one does not know its tables: update wlctl."""

    code = "ledger-newer"
    exit_code = ExitCode.LEDGER


class LedgerOutdated(WlctlError):
    """The ledger needs a migration that rewrites rows, which is never done unasked.

    Stop other uses of the ledger and run `wlctl ledger migrate`; it makes a backup first.
    """

    code = "ledger-outdated"
    exit_code = ExitCode.LEDGER


class Unreachable(WlctlError):
    """The node could not be used and nothing was done on it; `wlctl node probe` tries it again.

    No byte of a mutation was sent, so going on to another node is safe.
    """

    code = "unreachable"
    exit_code = ExitCode.UNREACHABLE


class ConnectFailed(Unreachable):
    """The address refuses the connection or does not resolve; check it, and that sshd runs."""

    code = "connect-failed"


class ConnectTimeout(Unreachable):
    """Nothing answered at the address in time; check address, routing and firewalls."""

    code = "connect-timeout"


class BannerTimeout(Unreachable):
    """Something accepted the connection and did not greet as an SSH server in time."""

    code = "banner-timeout"


class AuthTimeout(Unreachable):
    """The SSH server did not finish the key exchange or the login in time."""

    code = "auth-timeout"


class AuthFailed(Unreachable):
    """The node accepted none of the keys offered; put wlctl's public key in its authorized_keys."""

    code = "auth-failed"


class HostKeyChanged(Unreachable):
    """The node shows another host key than the recorded one: it may be another machine.

    Find out why the key changed before anything else; nothing is sent there meanwhile.
    """

    code = "host-key-changed"


class HostKeyUnknown(Unreachable):
    """No known_hosts file says which key this machine has: a jump host, or one that is to be added.

    wlctl records no key of a jump host by itself. Compare the fingerprint that is shown with the
    machine's own, then connect once with ssh, which asks and records it.
    """

    code = "host-key-unknown"


class HostKeyRevoked(Unreachable):
    """The machine shows a key that known_hosts marks as `@revoked`: somebody else may have it.

    Nothing is sent there. Give the machine a new host key, and record that one.
    """

    code = "host-key-revoked"


class CertificateExpired(Unreachable):
    """The login failed, and a certificate that may have been meant for it is out of its time.

    Have the key signed again, and put the certificate into the file that is named.
    """

    code = "certificate-expired"


class UnsafeSshConfig(Unreachable):
    """A file of ssh's configuration, or a known_hosts file, can have been written by others.

    What it says decides which machine is spoken to and which command leads there. Look at what it
    says, then give it to its user alone: mode 0600 or 0644, owned by you or root.
    """

    code = "unsafe-ssh-config"


class InvalidSshConfig(Unreachable):
    """A line of ssh's configuration cannot be understood, or whether it applies cannot be known.

    File and line are named. `Match exec` is refused where it could apply, since it runs a command.
    """

    code = "invalid-ssh-config"


class ShellFailed(Unreachable):
    """The login works and does not start a POSIX shell: check the account's shell on the node."""

    code = "no-shell"


class SudoRefused(Unreachable):
    """`sudo -n` asks for a password or forbids the command; add the sudoers line that is shown."""

    code = "unauthorized"


class DoorRefused(Unreachable):
    """The node lets wlctl's key ask for listed actions only, and this was not one of them.

    After an upgrade of wlctl, or when the ledger does not know that a node is enforced, run
    `wlctl node enforce NODE --as LOGIN`: it gives the node the list of this version. Nothing ran.
    """

    code = "door-refused"


class ConnectionLost(Unreachable):
    """The connection ended before the answer was whole; nothing was changed on the node."""

    code = "connection-lost"


class SilenceTimeout(Unreachable):
    """The node said nothing for too long in the middle of an answer."""

    code = "silence-timeout"


class ActionTimeout(Unreachable):
    """The node did not finish one action in time, though it kept sending."""

    code = "action-timeout"


class OperationTimeout(Unreachable):
    """All that one command does on a node took too long together, though each step was in time."""

    code = "operation-timeout"


class GarbledAnswer(Unreachable):
    """What the node sent is not an answer: too long, cut, or not in the form agreed.

    Usually something prints where only the answer may stand; try `ssh NODE true` and look.
    """

    code = "garbled-answer"


class Indeterminate(WlctlError):
    """A change may have been made on the node and no whole answer came back.

    Whatever it was about keeps what it holds. Type the same command again, or `wlctl unload` it:
    both carry a higher number, so what was lost can do nothing any more.
    """

    code = "indeterminate"
    exit_code = ExitCode.INDETERMINATE


class NameTaken(WlctlError):
    """The name is in use by something that is still there; choose another, or end that first."""

    code = "name-taken"
    exit_code = ExitCode.REFUSED


class SecretUnavailable(WlctlError):
    """A secret that the workload needs cannot be had where your settings say it is.

    `[secrets]` of your config.toml names, for each, a variable, a file that only you can read, or
    a command. Nothing was sent.
    """

    code = "secret-unavailable"
    exit_code = ExitCode.FAILED


class KeySpent(WlctlError):
    """The key of an order was given before, with another order or for what was unloaded since.

    A key makes sure that a repeated command places once. For a new order take a new key; to see
    what the old one was spent on: `wlctl ps`, `wlctl audit log`.
    """

    code = "key-spent"
    exit_code = ExitCode.REFUSED


class PlanMoved(WlctlError):
    """What a plan said would be done is not what would be done now; nothing was done.

    A node, the policy or what is placed changed since `--plan-out` wrote it. Look again with
    `wlctl place --dry-run --plan-out`, and place by the new plan.
    """

    code = "plan-moved"
    exit_code = ExitCode.MOVED


class ForeignNode(WlctlError):
    """What answers is not the node that was added: its state directory has another identity.

    The machine was replaced, its disk was wiped, or two machines answer at one address. Nothing was
    done on it and nothing it lists is believed.
    """

    code = "foreign-node"
    exit_code = ExitCode.UNREACHABLE


class FalseWitness(WlctlError):
    """A node keeps a checkpoint of this installation that this installation never signed.

    Its state directory was changed by hand, or the node lies. Nothing was done on it; the ledger is
    not doubted for it.
    """

    code = "false-witness"
    exit_code = ExitCode.UNREACHABLE


class TwoMachines(WlctlError):
    """Two machines answer as one node: another boot answers that was under way at the last reading.

    A machine was cloned with its state directory and host key, or one was set back to a snapshot.
    Nothing it lists is believed. Turn off the one that should not be there and start the other one
    anew: a boot that began after the last reading is believed again.
    """

    code = "two-machines"
    exit_code = ExitCode.UNREACHABLE


class TimedOut(WlctlError):
    """What was waited for did not come in time; nothing was changed, and it may still come."""

    code = "timeout"
    exit_code = ExitCode.FAILED


class IllegalStep(WlctlError):
    """What is asked cannot come from the state that the instance is in; nothing was changed.

    `wlctl status NAME` shows the state, and `wlctl history NAME` how it got there.
    """

    code = "illegal-step"
    exit_code = ExitCode.REFUSED


class NodeInUse(WlctlError):
    """Something of the ledger is still on the node, or held there; unload it before you go on."""

    code = "node-in-use"
    exit_code = ExitCode.REFUSED


class NodeUnfit(WlctlError):
    """The machine lacks what a node needs; the message names what is missing."""

    code = "node-unfit"
    exit_code = ExitCode.FAILED


class NotEnforceable(WlctlError):
    """The node cannot be made to verify for itself what it is sent; it was left as it was.

    The message says what is in the way: a tool of the node, a setting of its sshd, the login that
    wlctl uses, or a key that still opens a shell by another way.
    """

    code = "not-enforceable"
    exit_code = ExitCode.FAILED


class NoOutput(WlctlError):
    """There is no output to show: it never ran, or its node no longer has that run's output."""

    code = "no-output"
    exit_code = ExitCode.FAILED
