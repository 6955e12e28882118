"""How boundaries between sites settle: python3 bench/wan_efficiency/plot_balance.py OUT.png TITLE=FOLDER...

FOLDER: output of one site. Above, where the boundaries are; below, force times over their mean, and the step from
which they agree within 5 %. Prints the numbers, also without matplotlib.
"""
import sys

import measured

COLOURS = ["tab:blue", "tab:orange", "tab:green", "tab:red"]


def settled(trace, within=0.05):
    """The first step from which force times differ by less than `within` of the largest; None if they never do."""
    found = None
    for step, sites in trace:
        times = [s["force_seconds"] for s in sites]
        if max(times) <= 0:
            continue
        apart = 1 - min(times) / max(times)
        if apart > within:
            found = None
        elif found is None:
            found = step
    return found


def smoothed(trace, width):
    """Each step's times as means over the last `width` steps: what is left of noise."""
    out = []
    for i, (step, sites) in enumerate(trace):
        last = [s for _, s in trace[max(0, i - width + 1):i + 1]]
        out.append((step, [dict(site, force_seconds=sum(l[j]["force_seconds"] for l in last) / len(last))
                           for j, site in enumerate(sites)]))
    return out


def print_trace(title, trace):
    print(f"{title}: step, boundaries (sides), force seconds, difference")
    for step, sites in trace:
        times = [s["force_seconds"] for s in sites]
        apart = 1 - min(times) / max(times) if max(times) > 0 else 0
        print(f"{step:5}  " + " ".join(f"{s['begin']:.4f}" for s in sites[1:]) + "   " +
              " ".join(f"{t:.4f}" for t in times) + f"   {100 * apart:5.1f} %")
    for width in (1, 3):
        at = settled(smoothed(trace, width))
        print(f"  within 5 % for good ({width}-step means): " + (f"from step {at}" if at is not None else "not yet"))


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
            mean = [sum(s["force_seconds"] for s in sites) / count for _, sites in trace]
            times = [sites[i]["force_seconds"] / m if m > 0 else 1 for (_, sites), m in zip(trace, mean)]
            below.plot(steps, times, "o-", ms=3, color=COLOURS[i % 4], label=f"site {i + 1}")
        below.axhspan(0.975, 1.025, color="0.85")
        at = settled(smoothed(trace, 3))
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
