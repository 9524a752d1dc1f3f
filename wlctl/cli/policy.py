"""`wlctl policy`: what is permitted, and what the gate would answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode
from wlctl.flows import policy as flow
from wlctl.flows.gate import request_json, verdict_json
from wlctl.flows.policy import Trial
from wlctl.model.event import Json, rfc3339
from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.policy import Action, Policy

app = App("The policy: what is permitted, to whom, on which nodes.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="A policy file, TOML.")]


@app.command("show")
def show(ctx: typer.Context) -> None:
    """Print the policy in force, as its file was."""
    session = session_of(ctx)
    stored = flow.show(session.runtime)
    value: dict[str, Json] = {
        "sha256": stored.sha256,
        "applied_at": rfc3339(stored.applied_at_ms),
        "seq": stored.seq,
        "text": stored.text,
    }
    lines = stored.text.splitlines()
    render.document(session, "wlctl.policy/1", value, lines, name=stored.sha256)


@app.command("check")
def check(ctx: typer.Context, file: File) -> None:
    """Say what is wrong with a policy file; nothing is put in force.

    Unknown keys and actions, a bare `*` among actions, two rules with one id, and a policy that
    nobody could change again are errors, said with the path of the key.
    """
    session = session_of(ctx)
    policy = flow.check(file)
    value: dict[str, Json] = {"file": str(file), **_counts(policy)}
    lines = [f"{file} is a policy: {_words(policy)}"]
    render.document(session, "wlctl.policy.check/1", value, lines, name=str(file))


@app.command("apply")
def apply(ctx: typer.Context, file: File) -> None:
    """Put the policy of a file in force, with its hash in the chain.

    Whoever does so needs a permit for `policy.apply` under the policy that is in force until then.
    A policy under which nobody would have one is refused.
    """
    session = session_of(ctx)
    done = flow.apply(session.runtime, file)
    said = "is in force" if done.is_new else "was in force already"
    value: dict[str, Json] = {
        "sha256": done.stored.sha256,
        "applied": done.is_new,
        **_counts(done.policy),
    }
    lines = [f"policy {done.stored.sha256[:12]} {said}: {_words(done.policy)}"]
    if not done.keeps_author:
        session.note("under it you are not permitted to change the policy again; others are")
    render.document(session, "wlctl.policy.apply/1", value, lines, name=done.stored.sha256)


@app.command("test")
def try_out(
    ctx: typer.Context,
    package: Annotated[
        Path, typer.Argument(help="Directory of a signed package, NAME@VERSION, or its id.")
    ],
    node: Annotated[str, typer.Option(metavar="NODE", help="Where it would run.")],
    action: Annotated[
        str, typer.Option(metavar="ACTION", help="What would be done with it.")
    ] = Action.PLACE.value,
    principal: Annotated[
        str, typer.Option(metavar="LOGIN", help="Who would ask; you, otherwise.")
    ] = "",
    project: Annotated[str, typer.Option(help="Of the order.")] = "",
    emulated: Annotated[
        bool, typer.Option("--emulated", help="As if an emulated variant had been chosen.")
    ] = False,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="This policy, not the one in force.")
    ] = None,
) -> None:
    """Show what the gate would answer for a package on a node, by which rule, and what it weighs.

    Nothing is recorded. Exit 0: allowed. Exit 4: denied, or deferred to an approver.
    """
    session = session_of(ctx)
    trial = flow.try_out(
        session.runtime,
        package,
        node,
        action=action,
        principal=principal,
        project=project,
        emulated=emulated,
        policy_file=policy,
    )
    verdict = trial.answer.verdict
    installation = session.runtime.ledger.installation
    value: dict[str, Json] = {
        "package": trial.package_id,
        "request": request_json(trial.request, installation),
        "verdict": verdict_json(verdict),
        "waived": verdict_json(trial.answer.waived) if trial.answer.waived else None,
        "effect": {**trial.answer.effect.parts, "magnitude": trial.answer.effect.magnitude},
    }
    render.document(session, "wlctl.policy.test/1", value, _lines(trial), name=verdict.ruling)
    if verdict.ruling is not Ruling.ALLOWED:
        raise typer.Exit(ExitCode.REFUSED)


def _lines(trial: Trial) -> Iterator[str]:
    request, answer = trial.request, trial.answer
    where = f"{trial.node.name} ({trial.node.tier.word})"
    asked = f"{request.action} {trial.name} on {where} as {request.principal}"
    yield f"{asked}: {_said(answer.verdict)}"
    if answer.waived is not None:
        yield f"  waived: {_said(answer.waived)}"
    for name, part in answer.effect.parts.items():
        yield f"  {name:<9} {part:.2f}"
    yield f"  magnitude {answer.effect.magnitude:.2f}"


def _said(verdict: Verdict) -> str:
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f"{verdict.ruling.value} by {verdict.rule}{reason}"


def _counts(policy: Policy) -> dict[str, Json]:
    return {
        "permits": [permit.id for permit in policy.permits],
        "denies": [deny.id for deny in policy.denies],
        "ceiling": policy.ceiling.magnitude if policy.ceiling else None,
        "approvers": [approver.principal for approver in policy.approvers],
    }


def _words(policy: Policy) -> str:
    words = [
        render.counted(len(policy.permits), "permit"),
        render.counted(len(policy.denies), "deny", "denies"),
    ]
    if policy.ceiling is not None:
        words.append(f"a ceiling of {policy.ceiling.magnitude:g}")
    if policy.approvers:
        words.append(render.counted(len(policy.approvers), "approver"))
    return ", ".join(words)
