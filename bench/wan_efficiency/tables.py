"""The table of a measurement, in the form of SUSHI's table 7."""
import sushi


def rows(options, runs):
    """One object for each run; {(mesh, sites): Run}."""
    made = []
    for (mesh, sites), run in runs.items():
        one = runs.get((mesh, 1))
        made.append({
            "particles": round(run.particles ** (1 / 3)), "mesh": run.cells, "sites": sites, "ranks": options.ranks,
            "quota": options.quota, "steps": run.counted, "rebuilds": run.rebuilds, "mesh steps": run.long, "z": run.z,
            "exposed": run.exposed, "tree": run.tree, "pm": run.mesh, "step": run.step,
            "E": one.step / run.step if one else None, "own share": run.own_share(),
            "sent": run.sent(), "sent mesh": run.sent_mesh(),
            "eq. 12": sushi.bytes_of_step(run.particles, run.cells ** 3, sites, run.theta),
            "plain mesh": sushi.mesh_bytes(run.cells ** 3, sites), "kinds": run.kinds(),
        })
    return made


def show(options, table):
    first = table[0]
    print(f"\n{options.rtt:g} ms, {options.rate:g} Mbit/s, {options.streams} streams, paced at {options.pacing:g} of "
          f"the line; {options.ranks} ranks of {options.quota} processors; "
          f"{first['steps']} steps to z = {first['z']:.3g}")
    print("seconds a step; comm: waited for other sites; E: eq. 14, measured; own: of a step, what was not waited;\n"
          "MB of the site that sends most; over it: 16 M (s - 1) / s, both interlaced meshes as they are, over that")
    print("    N      M  sites     comm    tree      PM    step      E    own |"
          " a step: MB   eq. 12 | mesh: MB  over it")
    for r in table:
        efficiency = f"{r['E']:6.3f}" if r["E"] else "     -"
        ratio = f"{r['plain mesh'] / r['sent mesh']:8.1f}" if r["sent mesh"] else "       -"
        print(f"{r['particles']:4}^3 {r['mesh']:4}^3 {r['sites']:5} {r['exposed']:9.3f} {r['tree']:7.3f} "
              f"{r['pm']:7.3f} {r['step']:7.3f} {efficiency} {r['own share']:6.3f} | {r['sent'] / 1e6:10.3f} "
              f"{r['eq. 12'] / 1e6:8.3f} | {r['sent mesh'] / 1e6:8.3f} {ratio}")
    show_kinds(options, table)


def show_kinds(options, table):
    """What is on the critical path of a step of each kind. A message's way is half a round trip."""
    trips = 1000 / options.rtt if options.rtt else 0
    print("\nkind of step                     steps  seconds   waited  round trips  waits |"
          " SUSHI's round trips, eq. 11")
    for r in table:
        for name, (steps, seconds, waited, waits) in r["kinds"].items():
            print(f"{r['particles']:4}^3 {r['mesh']:4}^3 s={r['sites']} {name:<14} {steps:6} {seconds:8.3f} "
                  f"{waited:8.3f} {trips * waited:12.2f} {waits:6.1f} | {sushi.round_trips(r['sites']):5}")
