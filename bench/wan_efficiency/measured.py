"""What a run tells of itself: metrics.jsonl of each site."""
import json
import os
import re

KINDS = ["new lists", "kept, mesh", "kept, no mesh"]
PHASES = ["sums", "mesh", "trees", "particles", "output", "control"]


def kind(rebuilt, mesh):
    return KINDS[0] if rebuilt else KINDS[1] if mesh else KINDS[2]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


class Run:
    """Of the steps after the first `skip`; folders are those of its sites."""

    def __init__(self, folders, skip):
        self.steps = [_steps(f, skip) for f in folders]  # of each site
        self.traces = [[_trace(s) for s in steps] for steps in self.steps] if len(folders) > 1 else []
        self.counted = min(len(s) for s in self.steps)
        if self.counted == 0:
            raise SystemExit(f"{folders[0]}: no more than {skip} steps: more --steps, or a smaller --skip")
        first = self.steps[0]
        self.theta = first[-1]["theta"]
        self.particles, self.z = first[0]["particles"], first[-1].get("z", 0)
        self.cells = _mesh_cells(folders[0])
        self.rebuilds, self.long = sum(s["rebuilt"] for s in first), sum(s["long"] for s in first)
        self.step = max(mean(s["seconds"] for s in steps) for steps in self.steps)
        self.exposed = max((mean(t["waited"] for t in trace) for trace in self.traces), default=0.0)
        # Without what was waited for other sites in it.
        self.tree = self._phase("tree") - self._waited("trees", "particles")
        self.mesh = self._phase("mesh") - self._waited("mesh")

    def _phase(self, name):
        return mean(mean(s["phases"].get(name, 0) for s in steps) for steps in self.steps)

    def _waited(self, *phases):
        return mean(mean(sum(t[f"{p}_waited"] for p in phases) for t in trace) for trace in self.traces)

    def sent(self, phase=None):
        """Bytes a step, of the site that sent most; of one phase where one is named."""
        phases = [phase] if phase else PHASES
        return max((mean(sum(t[f"{p}_sent"] for p in phases) for t in trace) for trace in self.traces), default=0.0)

    def sent_mesh(self):
        """Bytes of a mesh step, of the site that sent most."""
        return max((mean(t["mesh_sent"] for t in trace if t["mesh"]) for trace in self.traces), default=0.0)

    def own_share(self):
        """Of the time of a step, what its slowest site did not wait for others: E as far as waiting goes."""
        return min((1 - sum(t["waited"] for t in trace) / sum(t["seconds"] for t in trace) for trace in self.traces),
                   default=1.0)

    def kinds(self):
        """{kind: (steps, seconds, waited, waits)}, each the largest of the sites' means."""
        found = {}
        for name in KINDS:
            of = [[t for t in trace if kind(t["rebuilt"], t["mesh"]) == name] for trace in self.traces]
            if of and of[0]:
                found[name] = (len(of[0]),) + tuple(max(mean(t[q] for t in trace) for trace in of)
                                                    for q in ("seconds", "waited", "waits"))
        return found


def _mesh_cells(folder):
    """Of a side of the mesh as the run had it: --config and keys may name another than --mesh."""
    with open(f"{folder}/metrics.jsonl") as file:
        return int(re.search(r"\nmesh = (\d+)", json.loads(file.readline())["provenance"]["configuration"])[1])


def _steps(folder, skip=-1):
    path = f"{folder}/metrics.jsonl"
    if not os.path.exists(path):
        raise SystemExit(f"{path} is missing: the run has not written it")
    lines = [json.loads(line) for line in open(path)]
    return [s for s in lines if s.get("step", -1) > skip]


def _trace(step):
    """Of a step over several sites: seconds of this site's slowest rank, waits, and by phase what it waited and sent."""
    sites = step["sites"]
    of_phases = {}
    for name, (waited, _, sent, _, _) in sites["phases"].items():
        of_phases[f"{name}_waited"], of_phases[f"{name}_sent"] = waited, sent
    return {"seconds": sites["own"]["seconds"], "waited": sites["waited"], "waits": sites["waits"],
            "rebuilt": step["rebuilt"], "mesh": step["long"], **of_phases}


def slabs_of(folder):
    """[(step, [{force, particles, interactions, begin, end}, ...])] of steps of which both are known."""
    known = {s["step"]: s["sites"] for s in _steps(folder) if s["sites"]["all"]}
    # Slabs are those of the line's step, times those that have come from all sites by then.
    times = {sites["told_of"]: list(sites["all"].values()) for sites in known.values()}
    slabs = {step: list(sites["all"].values()) for step, sites in known.items()}
    return [(step, [dict(time, begin=slab["begin"], end=slab["end"]) for time, slab in zip(times[step], slabs[step])])
            for step in sorted(set(times) & set(slabs))]
