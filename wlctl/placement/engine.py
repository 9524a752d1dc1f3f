"""Where does it go? Pure: the same request, fleet and moment always get the same decision."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from wlctl.errors import InvalidRequest
from wlctl.model.fleet import ClusterState, Hold, NodeView, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.placement import (
    TIER_ORDER,
    Candidate,
    Check,
    Decision,
    Placement,
    PlaceRequest,
    Weights,
)
from wlctl.model.workload import WorkloadSpec
from wlctl.placement.ask import prepare
from wlctl.placement.constraints import check_list
from wlctl.placement.holdings import NOTHING_HELD, held_by_node, summed, without
from wlctl.placement.limits import check_request, checked_weights, first_duplicate
from wlctl.placement.rules import Offer
from wlctl.placement.survey import Survey
from wlctl.placement.text import visible

_ATTACHED = frozenset({"sensor", "device", "feed"})

Gates = Mapping[NodeName, Verdict]


def decide(
    request: PlaceRequest,
    nodes: Iterable[NodeView],
    cluster: ClusterState,
    weights: Weights,
    now_ms: int,
) -> Decision:
    """Choose a node for each instance asked for, and give every node its verdict.

    Every constraint of every node is collected. Among the eligible nodes the best tier present
    forms the pool, then the higher score wins, then the lower name. A pin beats tier and score and
    no constraint; without one the first preferred node of the pool wins, else the first that is not
    to be avoided, else the first. The order of `nodes` never matters. That nothing fits is an
    answer.

    Args:
        request: What to place.
        nodes: The fleet, each with its gate verdict for this request.
        cluster: What the ledger knows.
        weights: What the terms of a score are worth.
        now_ms: The moment of the decision, epoch milliseconds.

    Raises:
        InvalidRequest: The request or the weights are not valid, or two nodes have one name.
        UnknownName: The pinned node, or one asked about, does not exist.
    """
    return Pass(nodes, cluster, weights, now_ms).decide(request)


class Pass:
    """One look at the fleet from which many decisions are made, each seeing the ones taken before.

    The verdicts of one workload are shared between its decisions; each still has all of them.
    """

    def __init__(
        self, nodes: Iterable[NodeView], cluster: ClusterState, weights: Weights, now_ms: int
    ) -> None:
        self._weights = checked_weights(weights)
        listed = sorted(nodes, key=attrgetter("name"))
        twice = first_duplicate([node.name for node in listed])
        if twice is not None:
            raise InvalidRequest(f"two nodes are called {visible(twice)}")
        self._nodes = {node.name: node for node in listed}
        self._cluster = cluster
        self._now_ms = now_ms
        self._held = held_by_node(cluster.holds)
        self._where_is = {hold.instance: hold.node for hold in cluster.holds if hold.instance}
        self._changed: list[NodeName] = []
        # The gates are kept with the survey, so that their id is not used twice.
        self._surveys: dict[object, tuple[Survey, int, Gates | None]] = {}

    def decide(self, request: PlaceRequest, gates: Gates | None = None) -> Decision:
        """Decide as `decide` does, on what is left after the decisions taken.

        Args:
            request: What to place.
            gates: The gate's verdicts for this request, instead of those the nodes came with; the
                same object for requests that share them.

        Raises:
            InvalidRequest: The request is not valid.
            UnknownName: The pinned node, or one asked about, does not exist.
        """
        check_request(request, self._nodes)
        survey = self._survey(request, gates)
        touched = {name: survey.offers[name] for name in self._own_nodes(request)}
        survey.current_node = request.current_node
        for name in touched:
            self._leave(survey, name, request.moving)
        try:
            return self._rounds(request, survey, touched)
        finally:
            survey.current_node = None
            for offer in touched.values():
                survey.put(offer)

    def take(self, decision: Decision, instances: Sequence[InstanceId]) -> None:
        """Hold what `decision` placed, so that the next decisions see it.

        Args:
            decision: Made by this pass.
            instances: The id of each of its placements, in their order.
        """
        request = decision.request
        for placement, instance in zip(decision.placements, instances, strict=True):
            self._hold(hold_of(request.workload, placement.chosen, instance))

    def _hold(self, hold: Hold) -> None:
        held = self._held.get(hold.node, NOTHING_HELD)
        self._held[hold.node] = summed((*held.holds, hold))
        self._where_is[hold.instance] = hold.node
        self._changed.append(hold.node)

    def _survey(self, request: PlaceRequest, gates: Gates | None) -> Survey:
        key = (request.workload, request.where, request.allow_emulated, id(gates))
        if key in self._surveys:
            survey, seen, _ = self._surveys[key]
            for name in dict.fromkeys(self._changed[seen:]):
                survey.put(survey.holding(survey.offers[name], self._held[name]))
        else:
            survey = Survey(prepare(request, self._weights, self._cluster.revoked), self._now_ms)
            retired = self._cluster.retired
            held = self._held.get
            survey.judge_all(
                [
                    (
                        node if gates is None else replace(node, gate=gates.get(name)),
                        held(name, NOTHING_HELD),
                        name in retired,
                    )
                    for name, node in self._nodes.items()
                ]
            )
        self._surveys[key] = survey, len(self._changed), gates
        return survey

    def _own_nodes(self, request: PlaceRequest) -> list[NodeName]:
        """The nodes that look different to the instance being moved."""
        found = {request.current_node}
        if request.moving is not None:
            found.add(self._where_is.get(request.moving))
        return sorted(name for name in found if name in self._nodes and name is not None)

    def _leave(self, survey: Survey, name: NodeName, moving: InstanceId | None) -> None:
        """Judge a node as if the instance being moved had left it."""
        before = survey.offers[name]
        own = [hold for hold in before.held.holds if hold.instance == moving]
        ports = {port for hold in own for port in hold.ports}
        listening = tuple(port for port in before.node.ports_listening if port not in ports)
        node = replace(before.node, ports_listening=listening) if ports else before.node
        held = without(before.held, moving) if own and moving else before.held
        survey.put(survey.offer(node, held, retired=before.retired))

    def _rounds(
        self, request: PlaceRequest, survey: Survey, touched: dict[NodeName, Offer]
    ) -> Decision:
        """Decide one instance after another; `touched` gets what was tried, to be undone."""
        placements: list[Placement] = []
        checks: dict[NodeName, tuple[Check, ...]] = {}
        for name in (request.pin, *request.why):
            if name is not None:
                checks[name] = tuple(check_list(survey.ask, survey.offers[name]))
        seen = survey.verdicts()
        order = dispatch_order(request, survey, seen.ranked)
        relaxed = survey.blame.relaxations(placed=bool(order), pin=request.pin)
        while order:
            chosen = order[0]
            offer = survey.offers[chosen.node]
            if chosen.node not in checks:
                checks[chosen.node] = tuple(check_list(survey.ask, offer))
            affinity = chosen is not survey.ranked[0]
            full = {
                name: survey.rejected[name]
                for name in sorted(touched)
                if name in survey.rejected and name not in seen.rejected
            }
            placements.append(Placement(chosen, affinity, order, full))
            if len(placements) == request.count:
                break
            touched.setdefault(chosen.node, offer)
            hold = hold_of(request.workload, chosen, InstanceId(""))
            survey.put(survey.holding(offer, summed((*offer.held.holds, hold))))
            order = dispatch_order(request, survey, tuple(survey.ranked))
        else:
            if placements:  # the verdicts that matter are those the next copy met
                seen = survey.verdicts()
                relaxed = survey.blame.relaxations(placed=False, pin=request.pin)
        fits = len(placements)
        return Decision(
            request=request,
            now_ms=self._now_ms,
            weights=self._weights,
            ranked=seen.ranked,
            rejected=seen.rejected,
            placements=tuple(placements) if fits == request.count else (),
            fits=fits,
            relaxations=relaxed,
            checks=checks,
            gated=survey.gated(),
        )


def dispatch_order(
    request: PlaceRequest, survey: Survey, ranked: tuple[Candidate, ...]
) -> tuple[Candidate, ...]:
    """Give the order in which to try: by tier; in each, the preferred, the rest, the avoided.

    Preferred nodes come in the order given, the others by rank. A pin allows only its node.
    """
    if request.pin is not None:
        pinned = survey.candidates.get(request.pin)
        return () if pinned is None else (pinned,)
    wishes = {name: len(request.prefer) + 1 for name in request.avoid}
    wishes |= {name: n for n, name in reversed(list(enumerate(request.prefer)))}
    if not any(name in survey.candidates for name in wishes):
        return ranked
    indifferent = len(request.prefer)
    return tuple(
        sorted(
            ranked,
            key=lambda one: (TIER_ORDER[one.tier], wishes.get(one.node, indifferent)),
        )
    )


def needs_attached_hardware(spec: WorkloadSpec) -> bool:
    """Answer whether it can only run where a sensor, device or feed is attached.

    An accelerator is deliberately not one: any node with the same is as good a home.
    """
    requirements = (*spec.common, *(r for variant in spec.variants for r in variant.requirements))
    return any(
        (requirement.id or requirement.id_prefix or "").split(".", 1)[0] in _ATTACHED
        for requirement in requirements
    )


def hold_of(spec: WorkloadSpec, chosen: Candidate, instance: InstanceId, name: str = "") -> Hold:
    """Give what a placement of `spec` holds.

    Args:
        spec: What was placed.
        chosen: Where.
        instance: Its id; empty while it has none.
        name: What people call it; the workload's name when empty.
    """
    return Hold(
        node=chosen.node,
        instance=instance,
        name=name or spec.name,
        kind=spec.kind,
        workload=spec.name,
        labels=spec.policy.labels,
        excludes=spec.policy.excludes,
        ports=tuple(number for _name, number in spec.ports if number),
        claims=chosen.assigned,
        memory_bytes=spec.resources.memory_bytes,
        accel_memory_bytes=spec.resources.accel_memory_bytes,
        cpu_cores=spec.resources.cpu_cores,
        disk_bytes=spec.resources.disk_bytes,
    )
