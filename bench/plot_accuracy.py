"""Force error against time of a step, from the JSON of bench_accuracy: python3 bench/plot_accuracy.py OUT.png TITLE=FILE.json..."""
import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def cases(path):
    """{case: {quantity: value}} in the file's order."""
    found = {}
    for row in json.load(open(path))["results"]:
        case, quantity = row["what"].rsplit(": ", 1)
        found.setdefault(case, {})[quantity] = row["value"]
    return found


def style(case):
    if "split=s2" in case:
        return "tab:red", "s"
    for preset, colour in (("fast", "tab:green"), ("standard", "tab:blue"), ("precise", "tab:purple")):
        if case == f"run.preset={preset}":
            return colour, "*"
    return "0.55", "o"


def main(out, *inputs):
    fig, axes = plt.subplots(1, len(inputs), figsize=(6 * len(inputs), 4.6), sharey=True, squeeze=False)
    for ax, item in zip(axes[0], inputs):
        title, path = item.rsplit("=", 1)
        for case, q in cases(path).items():
            colour, marker = style(case)
            time = q["rebuild step"] + q["mesh step"]
            ax.loglog(time, q["median error"], marker, color=colour, ms=13 if marker == "*" else 5)
            ax.loglog([time, time], [q["median error"], q["99 % error"]], "-", color=colour, lw=0.7)
            if marker == "*":
                ax.annotate(case.split("=")[1], (time, q["median error"]), textcoords="offset points", xytext=(8, -4))
        ax.set_title(title)
        ax.set_xlabel("seconds: rebuild step and mesh step")
        ax.grid(alpha=0.3, which="both")
    axes[0][0].set_ylabel("error of the force: median (marker) to 99 %")
    fig.text(0.99, 0.01, "stars: presets, squares: S2 split with r_cut = 3 cells, dots: other settings", ha="right", size=8)
    fig.tight_layout()
    fig.savefig(out, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
