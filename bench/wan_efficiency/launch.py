"""Starts a run of one site, or of several in the namespaces of a testbed, each rank in its control group."""
import json
import os
import subprocess
import sys
import time

import problem
import quota

ENTER = 'echo $$ > "$MAKI_GROUPS/rank_$(($MAKI_FIRST_RANK + ${OMPI_COMM_WORLD_RANK:-0}))/cgroup.procs"; exec "$@"'


def command(options, ranks, folder, site=None, namespace=None):
    words = ["sh", "-c", ENTER, "maki", options.maki, "run", f"{folder}/run.toml"] + options.set
    words += [f"run.output_directory={folder}/{site or 'one'}"]
    if site:
        words += ["--site", site]
    if ranks > 1:
        words = ["mpirun", "-n", str(ranks), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                 "-mca", "btl_vader_single_copy_mechanism", "none"] + words
    if namespace:
        # `ip netns exec` would hide the control groups: it mounts another /sys.
        words = ["nsenter", f"--net=/var/run/netns/{namespace}"] + words
    return words


def start(options, words, groups, first, log):
    environment = dict(os.environ, OMP_NUM_THREADS="1", MAKI_GROUPS=groups.folder, MAKI_FIRST_RANK=str(first))
    return subprocess.Popen(words, stdout=open(log, "w"), stderr=subprocess.STDOUT, env=environment)


def wait_all(processes, logs, limit):
    """Until all have ended; if one fails the others are stopped. The first failure's log is shown."""
    until = time.monotonic() + limit
    while any(p.poll() is None for p in processes):
        failed = [i for i, p in enumerate(processes) if p.poll() not in (None, 0)]
        if failed or time.monotonic() > until:
            # Whoever is left is told by wan/net within seconds; a little time to say so.
            end = time.monotonic() + 5
            while time.monotonic() < end and any(p.poll() is None for p in processes):
                time.sleep(0.1)
            for p in processes:
                if p.poll() is None:
                    p.terminate()
            for p in processes:
                p.wait()
            break
        time.sleep(0.05)
    for p, log in zip(processes, logs):
        if p.returncode != 0:
            sys.exit(f"{log} ended with {p.returncode}:\n" + "".join(open(log).readlines()[-25:]))


def one_site(options, folder, text):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/run.toml", "w") as file:
        file.write(text)
    groups = quota.Groups(options.shares)
    process = start(options, command(options, options.ranks, folder), groups, 0, f"{folder}/one.log")
    wait_all([process], [f"{folder}/one.log"], options.limit)
    groups.remove()


def several_sites(options, count, folder, text):
    """By way of the testbed, which runs inside() below."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/universe.toml", "w") as file:
        file.write(text)
    with open(f"{folder}/options.json", "w") as file:
        json.dump(vars(options), file)
    here = os.path.dirname(os.path.abspath(__file__))
    words = [options.testbed, "--sites", str(count), "--topology", "line" if count == 2 else "ring",
             "--rtt", f"{options.rtt}ms", "--rate", f"{options.rate}Mbit", "--rmem", "6MB", "--wmem", "4MB", "--quiet"]
    status = subprocess.run(words + ["--", sys.executable, here, "--inside", folder]).returncode
    if status:
        sys.exit(status)


def inside(options, folder):
    count = int(os.environ["MAKI_SITES"])
    key = f"{folder}/site.key"
    if not os.path.exists(key):
        subprocess.run([options.maki, "wan", "keygen", key], check=True, stdout=subprocess.DEVNULL)
    addresses = [os.environ[f"MAKI_ADDR_{i}"] for i in range(count)]
    with open(f"{folder}/run.toml", "w") as file:
        file.write(open(f"{folder}/universe.toml").read() + problem.sites(options, count, addresses, key))
    groups = quota.Groups(options.shares)
    ranks, processes, logs = options.ranks // count, [], []
    for i, name in enumerate(problem.NAMES[:count]):
        logs.append(f"{folder}/{name}.log")
        words = command(options, ranks, folder, name, os.environ[f"MAKI_NS_{i}"])
        processes.append(start(options, words, groups, i * ranks, logs[-1]))
    wait_all(processes, logs, options.limit)
    groups.remove()
