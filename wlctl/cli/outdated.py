"""Says which enforced nodes a change of signers has left behind."""

from wlctl.cli.options import Session


def note_outdated(session: Session, still: str) -> None:
    """After a change of whose signatures count: say which enforced nodes go by older lists.

    Args:
        still: What they do until these are renewed.
    """
    from wlctl.flows import enforce as flow

    names = flow.outdated(session.runtime)
    if names:
        session.note(
            f"enforced nodes {still} until their lists are renewed: {', '.join(names)}: "
            "`wlctl node enforce NAME --as LOGIN`"
        )
