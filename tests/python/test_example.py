"""The example runs from its first line to its last."""
import pathlib
import subprocess
import sys

EXAMPLE = pathlib.Path(__file__).parents[2] / "src/python/examples/universe.py"


def test_the_example(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE, "24", tmp_path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "universe.png").stat().st_size > 50000
    for word in ("box: error of the force", "cluster: error of the force", "groups of 32 particles"):
        assert word in done.stdout
