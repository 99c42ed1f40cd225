"""Calibrates the model by one worker, and compares its second worker with this host's.

The only figure that is fitted is the time of an access with what the processor does until the next one: it is chosen
such that the model's one worker is as fast as the host's. Every other cost is measured by build/micro/line_bench.
"""
from __future__ import annotations

import statistics
from dataclasses import replace

from lines import runs
from lines.runs import Cell, Plan

CLOSE = 0.01       # of the model's one worker to the host's
TRIES = 6
ACCESS_NANOS_MIN = 0.001
ERROR_MAX = 0.15
CELLS_MIN = 10
SAME_CORES = 0.2   # the cost of a transfer before a round and after it differ by less: the threads ran on the same cores
WARMUP_OF_LARGE_CACHES = 20_000  # transactions: until private caches without a limit hold the table


def is_cache_shared(costs: dict) -> bool:
    """Whether what one core has written and evicted is near to the other."""
    return costs["far_nanos"] < (costs["miss_nanos"] + costs["transfer_nanos"]) / 2


def private_bytes(costs: dict) -> int:
    """Of a core's own caches. Cores without a cache in common have all levels to themselves: no limit."""
    return costs["level2_bytes"] if is_cache_shared(costs) else 0


def calibrate(cell: Cell, single: float, plan: Plan) -> tuple[Plan, dict]:
    """`single`: throughput of one worker on this host. Returns the plan with its time per access, and the row of the
    model's one worker."""
    nanos, row = 0.5, {}
    for _ in range(TRIES):
        plan = replace(plan, costs={**plan.costs, "access_nanos": nanos})
        row = runs.simulate(cell, 1, plan)
        error = 1e9 / single - 1e9 / row["modelled_throughput"]  # ns per transaction
        if abs(error) * single / 1e9 < CLOSE or (nanos == ACCESS_NANOS_MIN and error < 0):
            break
        nanos = max(nanos + error / row["accesses"], ACCESS_NANOS_MIN)
    return plan, row


def plan_of_host(costs: dict, log_dir: str, seconds: float, cores: int = 2) -> Plan:
    warmup = 300 if is_cache_shared(costs) else WARMUP_OF_LARGE_CACHES
    return Plan(costs, cores, private_bytes(costs), seconds, warmup, log_dir)


def measure_round(cell: Cell, seconds: float, log_dir: str) -> dict:
    """Throughput of one and of two workers, and what a transfer cost before and after each."""
    costs = [runs.host_costs(transfers_alone=True)]
    found = {"cell": cell.name}
    for workers in (1, 2):
        found[str(workers)] = runs.measure(cell, workers, seconds, log_dir)
        costs.append(runs.host_costs(transfers_alone=True))
    found["costs"] = costs
    return found


def mode_of(before: dict, after: dict) -> str | None:
    """In which the host was during a run: "near" or "far", as the two processors have a cache in common or not; None if
    that changed."""
    transfers = (before["transfer_nanos"], after["transfer_nanos"])
    if max(transfers) > (1 + SAME_CORES) * min(transfers) or is_cache_shared(before) != is_cache_shared(after):
        return None
    return "near" if is_cache_shared(before) else "far"


def points_of(rounds: list[dict]) -> list[dict]:
    """Of each cell and mode in which both numbers of workers were measured: the best runs, as a busy host only slows
    runs down, and the median costs."""
    groups: dict[tuple[str, str], dict] = {}
    for found in rounds:
        for workers, before, after in (("1", *found["costs"][:2]), ("2", *found["costs"][1:])):
            mode = mode_of(before, after)
            if mode is not None:
                group = groups.setdefault((found["cell"], mode), {"1": [], "2": [], "costs": []})
                group[workers].append(found[workers])
                group["costs"] += (before, after)
    return [{"cell": cell, "mode": mode, "runs": len(group["1"]) + len(group["2"]),
             "one": max(group["1"]), "two": max(group["2"]),
             **{name: statistics.median(costs[name] for costs in group["costs"])
                for name in ("transfer_nanos", "far_nanos", "miss_nanos")}}
            for (cell, mode), group in sorted(groups.items()) if group["1"] and group["2"]]


def predict(point: dict, costs: dict, log_dir: str, seconds: float) -> dict:
    """The point with the model's ratio of two workers to one, and its error."""
    own = {name: point[name] for name in ("transfer_nanos", "far_nanos", "miss_nanos")}
    plan = plan_of_host({**costs, **own}, log_dir, seconds)
    cell = runs.parse_cell(point["cell"])
    plan, one = calibrate(cell, point["one"], plan)
    two = runs.simulate(cell, 2, plan)
    predicted = two["modelled_throughput"] / one["modelled_throughput"]
    measured = point["two"] / point["one"]
    return {**point, "access_nanos": plan.costs["access_nanos"], "model_one": one["modelled_throughput"],
            "predicted": predicted, "measured": measured, "error": predicted / measured - 1,
            "dirty": two["dirty"], "upgrades": two["upgrades"]}


def close_cells(points: list[dict], mode: str) -> set[str]:
    return {point["cell"] for point in points if point["mode"] == mode and abs(point["error"]) <= ERROR_MAX}


def verdict(points: list[dict]) -> tuple[bool, str]:
    """Whether the model may be shown: by the points whose cores have a cache in common, as those of a sweep have."""
    counts = []
    for mode in ("near", "far"):
        cells = {point["cell"] for point in points if point["mode"] == mode}
        counts.append(f"{len(close_cells(points, mode))} of {len(cells)} cells whose cores are {mode}")
    text = f"within {ERROR_MAX:.0%} of this host's second worker: {', '.join(counts)}; {CELLS_MIN} near ones are needed"
    return len(close_cells(points, "near")) >= CELLS_MIN, text
