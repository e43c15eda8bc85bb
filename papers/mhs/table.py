"""ReLU networks on the contextual tasks of MHS §4–6 against gated ones, with nothing fitted.

The width of a gated network's pathways decides how far ahead each starts. Four rules for the width,
none of which looks at a curve, are measured side by side. `H` is the width of the ReLU network; all
networks have the same initial standard deviation.

- `sign`: H/2 for the common pathway, the other H/2 divided equally among the others. Inputs and
  targets are nowhere negative, so the first mode is positive on every sample. The neurons that
  start on its side, half of them, are drawn to it and are on everywhere; the other half is
  available to the other pathways.
- `equal`: H divided equally among all pathways (equal total width, as in `contest`).
- `half`: H/2 for every pathway, since each may recruit any neuron that starts on its side.
- `authors`: 100 for every pathway (MHS Table 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import jax
import jax.numpy as jnp
import numpy as np

from neuralrace import tasks
from neuralrace.architecture import Architecture
from neuralrace.dataset import Dataset
from neuralrace.dynamics import train_ensemble
from neuralrace.errors import NeuralRaceError, listed
from neuralrace.gdln import GDLN
from neuralrace.reduction import reduce
from neuralrace.relu import ReLUNetwork
from neuralrace.trajectory import Trajectory, compare
from papers.mhs.contextual import STRUCTURES

if TYPE_CHECKING:
    from neuralrace.types import Key


@final
@dataclass(frozen=True)
class Case:
    """A column: task, networks and descent as in the authors' scripts, and the authors' results.

    `hidden` are the widths of the ReLU network's hidden layers and `scale` the standard deviation
    of its initial weights; `step` refers to the *summed* loss, so the learning rate is `step` ·
    samples. `published` has the authors' mean (and largest) |ΔL|/L(0), measured on their scripts,
    for their gated network, their prediction with fitted start values and overlaps, the gating by
    single contexts, and another seed.
    """

    title: str
    task: Mapping[str, Any]
    hidden: tuple[int, ...]
    scale: float
    steps: int = 8000
    step: float = 0.001
    seeds: int = 5
    published: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Dataset:
        return tasks.contextual(**self.task)

    @property
    def learning_rate(self) -> float:
        """The learning rate for the mean loss."""
        return self.step * self.data.n_samples


def _published(reln: str, fitted: str, single: str, floor: str) -> dict[str, str]:
    return {"gated": reln, "predicted": fitted, "single": single, "floor": floor}


CASES: Mapping[str, Case] = {
    "different": Case(
        "3 contexts, different",
        {"structures": STRUCTURES},
        (700,),
        0.005 / 700,
        published=_published(".0071 (.105)", ".0108 (.133)", ".037", ".0009"),
    ),
    "C3": Case(
        "C = 3",
        {"contexts": 3},
        (700,),
        0.005 / 700,
        published=_published(".0127 (.104)", ".0108 (.046)", ".036", ".0010"),
    ),
    "C4": Case(
        "C = 4 (×1.1)",
        {"contexts": 4, "context_scale": 1.1},
        (500,),
        0.005 / 500,
        published=_published(".0050 (.073)", ".0025 (.017)", ".061", ".0009"),
    ),
    "C5": Case(
        "C = 5 (×1.35)",
        {"contexts": 5, "context_scale": 1.35},
        (600,),
        0.005 / 600,
        published=_published(".0066 (.094)", ".0089 (.159)", ".077", ".0014"),
    ),
    "C4 plain": Case("C = 4 (×1)", {"contexts": 4}, (500,), 0.005 / 500),
    "C5 plain": Case("C = 5 (×1)", {"contexts": 5}, (600,), 0.005 / 600),
    "depth": Case(
        "C = 3, two layers",
        {"contexts": 3},
        (420, 420),
        6e-4,
        steps=30000,
        seeds=3,
        published=_published(".017 (.31)", "–", "–", ".011–.017"),
    ),
}
"""Settings of MHS §4 (different), §5 (C3, C4, C5) and §6 (depth), from the authors' scripts."""

RULES: Mapping[str, Callable[[int, int], tuple[int, int]]] = {
    "sign": lambda H, others: (H // 2, H // 2 // others),
    "equal": lambda H, others: (H // (others + 1), H // (others + 1)),
    "half": lambda H, others: (H // 2, H // 2),
    "authors": lambda H, others: (100, 100),
}
"""The width of the common and of each other pathway, from the ReLU width and their number."""

GATINGS = {
    "gated": tasks.common_and_all_but_one,
    "single": tasks.common_and_single,
    "subsets": tasks.all_subsets,
}
"""The function that makes each gating."""


@final
@dataclass(frozen=True)
class Row:
    """Mean and largest |ΔL|/L(0) against the ReLU network over seeds (or pairs of seeds)."""

    means: tuple[float, ...]
    largest: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.means))

    @property
    def max(self) -> float:
        return float(np.mean(self.largest))

    def __str__(self) -> str:
        sd = float(np.std(self.means, ddof=1)) if len(self.means) > 1 else 0.0
        return f"{self.mean:.4f} ± {sd:.4f} ({self.max:.3f})".replace("0.", ".")


def column(
    setting: Case,
    *,
    rows: Sequence[tuple[str, str]] = (
        *(("gated", rule) for rule in RULES),
        *(("predicted", rule) for rule in RULES),
        ("single", "sign"),
    ),
    seeds: int | None = None,
    steps: int | None = None,
    record_every: int = 20,
    key: Key | None = None,
) -> dict[tuple[str, str], Row]:
    """One column of the table: every row (what, width rule) against the ReLU network.

    Rows are `"gated"` (common and all-but-one, trained jointly), `"single"` (common and single
    contexts), `"subsets"` (common and every smaller set of contexts) and `"predicted"`: the race of
    `"gated"`, from its actual initial weights. Run i of one network is compared with run i of the
    other; their weights are drawn independently. The row `("floor", "")` has all pairs of seeds of
    the ReLU network itself. Training is in float32.

    ```python
    >>> from papers.mhs import table
    >>> list(table.column(table.CASES["C3"], rows=[], seeds=2, steps=20))
    [('floor', '')]

    ```
    """
    key = jax.random.key(0) if key is None else key
    relu_key, gated_key = jax.random.split(key)
    seeds = setting.seeds if seeds is None else seeds
    options = {
        "seeds": seeds,
        "scale": setting.scale,
        "learning_rate": setting.learning_rate,
        "steps": setting.steps if steps is None else steps,
        "record_every": record_every,
        "dtype": jnp.float32,
    }
    joined = narrowed(tasks.contextual(joined=True, **setting.task))
    ends = (joined.x["x"].shape[1], joined.y["y"].shape[1])
    relu = train_ensemble(
        ReLUNetwork((ends[0], *setting.hidden, ends[1])), joined, key=relu_key, **options
    )
    reference = [relu.isel(seed=i) for i in range(seeds)]
    pairs = [(i, j) for i in range(seeds) for j in range(i)]
    found = {("floor", ""): _row([(reference[i], reference[j]) for i, j in pairs])}
    for what, rule in rows:
        arch, data = gated_network(setting, "gated" if what == "predicted" else what, rule)
        if what == "predicted":
            runs = predictions(arch, data, setting, gated_key, seeds, relu.time)
        else:
            many = train_ensemble(GDLN(arch), narrowed(data), key=gated_key, **options)
            runs = [many.isel(seed=i) for i in range(seeds)]
        found[what, rule] = _row(list(zip(reference, runs, strict=True)))
    return found


def gated_network(setting: Case, what: str, rule: str) -> tuple[Architecture, Dataset]:
    """A gating of `GATINGS` on a column's task, with pathway widths by a rule of `RULES`.

    With two hidden layers, the first is shared by all pathways, always on, and as wide as that of
    the ReLU network (MHS Fig. 6).
    """
    if what not in GATINGS or rule not in RULES:
        raise NeuralRaceError(
            "no such gating or rule of widths",
            got=f"{what!r}, {rule!r}",
            wanted=f"one of {listed(GATINGS)}, and one of {listed(RULES)}",
            fix="('gated', 'sign') is MHS's gating by the sign rule",
        )
    arch, data = GATINGS[what](setting.data)
    common, other = RULES[rule](setting.hidden[-1], len(arch.hidden) - 1)
    sizes = {v: common if v == "common" else other for v in arch.hidden}
    if len(setting.hidden) == 1:
        return Architecture({**arch.sizes, **sizes}, arch.edges), data
    inputs = {v: arch.sizes[v] for v in arch.inputs}
    edges = {f"{v}_shared": (v, "shared") for v in inputs}
    edges |= {f"shared_{v}": ("shared", v) for v in sizes}
    edges |= {f"{v}_y": (v, "y") for v in sizes}
    all_sizes = {**inputs, "shared": setting.hidden[0], **sizes, "y": arch.sizes["y"]}
    return Architecture(all_sizes, edges), data


def predictions(
    arch: Architecture, data: Dataset, setting: Case, key: Key, seeds: int, times: np.ndarray
) -> list[Trajectory]:
    """The race from the initial weights that `train_ensemble` gives each seed, step by step."""
    race, net = reduce(arch, data), GDLN(arch)
    solved = []
    for seed_key in jax.random.split(key, seeds):
        weights = net.init(seed_key, setting.scale, dtype=jnp.float32)
        start = race.start({e: np.asarray(w, np.float64) for e, w in weights.items()})
        solved.append(race.solve(times=times, start=start, learning_rate=setting.learning_rate))
    return solved


def narrowed(data: Dataset) -> Dataset:
    """The data in float32, as the weights are."""
    cut = lambda values: {name: np.asarray(v, np.float32) for name, v in values.items()}
    return Dataset(cut(data.x), cut(data.y), cut(data.gates), labels=data.labels)


def _row(pairs: Sequence[tuple[Trajectory, Trajectory]]) -> Row:
    found = [compare(a, b) for a, b in pairs]
    return Row(tuple(c.mean for c in found), tuple(c.max for c in found))


LABELS = {
    "floor": "another seed of the ReLU network",
    "gated": "common + all-but-one, trained",
    "predicted": "common + all-but-one, predicted",
    "single": "common + single, trained",
    "subsets": "common + all subsets, trained",
}
"""The labels of the rows that are measured here."""


PUBLISHED = {
    "gated": "authors: gated network",
    "predicted": "authors: prediction, fitted",
    "single": "authors: single contexts",
    "floor": "authors: another seed",
}
"""The labels of the rows with the authors' results."""


def markdown(columns: Mapping[str, Mapping[tuple[str, str], Row]]) -> str:
    """The table, with columns named as in `CASES` and the authors' results below."""
    names = list(columns)
    lines = ["| ReLU against | " + " | ".join(CASES[n].title for n in names) + " |"]
    lines.append("|" + "---|" * (len(names) + 1))
    for what, rule in dict.fromkeys(row for found in columns.values() for row in found):
        title = LABELS[what] + (f", widths *{rule}*" if rule else "")
        cells = [str(columns[n].get((what, rule), "–")) for n in names]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for what, title in PUBLISHED.items():
        cells = [CASES[n].published.get(what, "–") for n in names]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
