"""Configurations: a TOML file, keys that override it, or both."""
import logging
import os

from . import _core

log = logging.getLogger("maki")


def tell(notes):
    """What Maki has to say, such as positions that it has wrapped, to the logger "maki"."""
    for note in notes:
        log.warning("%s", note)


def text_of(value):
    """A value as Maki's command line has it."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if hasattr(value, "tolist"):  # of numpy
        return text_of(value.tolist())
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(f'"{one}"' if isinstance(one, str) else text_of(one) for one in value) + "]"
    return repr(value)


def settings_of(keys):
    """["box.size=50 Mpc/h", ...] of {"box.size": "50 Mpc/h"}, of {"box": {"size": ...}}, and of short names alike."""
    settings = []
    for name, value in keys.items():
        if isinstance(value, dict):
            settings += [f"{name}.{key}={text_of(inner)}" for key, inner in value.items()]
        else:
            settings.append(f"{name}={text_of(value)}")
    return settings


class Configuration:
    """What a run is to be: a file in TOML, and keys that override what it says.

    Configuration("quickstart.toml", seed=7, box={"size": "50 Mpc/h"}, **{"gravity.theta": 0.6})

    A key is written as "section.key", as a dict for its section, or alone where one section only has it. None stands for
    "auto". Errors name the key, and the nearest known one. All keys: maki.describe_keys().
    """

    def __init__(self, source=None, **keys):
        self._read(source, settings_of(keys))

    def _read(self, source, settings):
        if isinstance(source, Configuration):
            self.path, self.settings = source.path, source.settings + settings
        else:
            self.path, self.settings = None if source is None else os.fspath(source), settings
        self.core = _core.read_config(self.path, self.settings)

    def toml(self):
        """Every key that has a meaning for this kind of run, as TOML."""
        return self.core.toml()

    def as_dict(self):
        """The same as {"box": {"size": "50.0 Mpc/h"}, ...} (Python 3.11 or newer)."""
        import tomllib
        return tomllib.loads(self.toml())

    def with_keys(self, settings):
        """A copy with further "section.key=value"."""
        return configured(self, settings)

    def __repr__(self):
        return f"<maki.Configuration: {self.path or 'defaults'}{''.join(' ' + one for one in self.settings)}>"


def configured(source, settings):
    """A Configuration with these "section.key=value"."""
    made = Configuration.__new__(Configuration)
    made._read(source, settings)
    return made


def for_set(snapshot, source, keys, end=()):
    """The configuration for particles that are there already: kind, box and units are theirs. `end`: settings that give
    way to those of the caller."""
    kind = "cosmology" if snapshot.header.comoving else "isolated"
    fixed = [f"run.kind={kind}", "initial.kind=file", "initial.file=the given particles"]
    return configured(source, [*end, *settings_of(keys), *fixed])


def initial_conditions(source=None, **keys):
    """The Snapshot that a configuration begins with: maki.initial_conditions("quickstart.toml", seed=7), or
    maki.initial_conditions(run={"kind": "isolated"}, initial={"kind": "plummer"}, particles=1000, softening=0.01)."""
    snapshot, notes = _core.initial_conditions(Configuration(source, **keys).core)
    tell(notes)
    return snapshot
