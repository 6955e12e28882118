"""How boundaries between sites settle: python3 bench/wan_efficiency/plot_balance.py OUT.png TITLE=FOLDER...

FOLDER: output of one site. Above, where the boundaries are; below, force times over their mean, and the step from
which they agree within 5 % on average. Prints the numbers, also without matplotlib.
"""
import sys

import measured

COLOURS = ["tab:blue", "tab:orange", "tab:green", "tab:red"]


def difference(times):
    return 1 - min(times) / max(times) if max(times) > 0 else 0.0


def stretches(trace):
    """[(first step, last step, boundaries, mean force seconds of each site)]: of steps with the same boundaries."""
    found = []
    for step, sites in trace:
        boundaries = [s["begin"] for s in sites[1:]]
        if not found or found[-1][2] != boundaries:
            found.append([step, step, boundaries, []])
        found[-1][1] = step
        found[-1][3].append([s["force"] for s in sites])
    return [(a, b, at, [sum(t) / len(t) for t in zip(*times)]) for a, b, at, times in found]


def settled(trace, within=0.05):
    """The step from which on, as long as boundaries stay, mean force times differ by less; None if they never do."""
    found = None
    for first, _, _, times in stretches(trace):
        if difference(times) > within:
            found = None
        elif found is None:
            found = first
    return found


def print_trace(title, trace):
    print(f"{title}\n  steps     boundaries (sides), mean force seconds of each site, difference")
    for first, last, boundaries, times in stretches(trace):
        print(f"  {first:3} - {last:3}  " + " ".join(f"{b:.4f}" for b in boundaries) + "   " +
              " ".join(f"{t:.4f}" for t in times) + f"   {100 * difference(times):5.1f} %")
    at = settled(trace)
    print("  force times agree within 5 % " + (f"from step {at} on" if at is not None else "not yet"))


def plot(out, traces):
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    fig, axes = plt.subplots(2, len(traces), figsize=(6 * len(traces), 6), sharex="col", squeeze=False)
    for (title, trace), (above, below) in zip(traces.items(), axes.T):
        steps = [step for step, _ in trace]
        count = len(trace[0][1])
        for i in range(1, count):
            above.step(steps, [sites[i]["begin"] for _, sites in trace], where="post", color="k")
        above.set_ylim(0, 1)
        above.set_ylabel("boundary, sides of the box")
        above.set_title(title)
        for i in range(count):
            mean = [sum(s["force"] for s in sites) / count for _, sites in trace]
            times = [sites[i]["force"] / m if m > 0 else 1 for (_, sites), m in zip(trace, mean)]
            below.plot(steps, times, "o-", ms=3, color=COLOURS[i % 4], label=f"site {i + 1}")
        below.axhspan(0.975, 1.025, color="0.85")
        at = settled(trace)
        if at is not None:
            below.axvline(at, color="0.5", lw=0.8, ls="--")
        below.set_xlabel("step")
        below.set_ylabel("force time over the mean of sites")
        below.legend()
        for ax in (above, below):
            ax.grid(alpha=0.3)
    fig.tight_layout()
    fig.savefig(out, dpi=110)


def main(out, *inputs):
    traces = {}
    for item in inputs:
        title, folder = item.rsplit("=", 1)
        traces[title] = measured.slabs_of(folder)
        print_trace(title, traces[title])
    plot(out, traces)


if __name__ == "__main__":
    main(*sys.argv[1:])
