"""Tasks whose inputs come one step after another, for recurrent networks, and their gatings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from neuralrace.architecture import Architecture
from neuralrace.checks import generator, real_array
from neuralrace.dataset import Dataset
from neuralrace.door import door
from neuralrace.errors import listed, require
from neuralrace.tasks.natural import label
from neuralrace.types import ArrayLike, Count, Finite, Key, NotNegative

Rows = Float[np.ndarray, "N features"]


@door
def sequences(
    x: ArrayLike,
    y: ArrayLike,
    readout: str | Sequence[int] = "last",
    *,
    initial: ArrayLike | None = None,
    labels: Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    loss_weight: ArrayLike | None = None,
) -> Dataset:
    """Sequences from arrays, as `Architecture.recurrent` with the same `readout` reads them.

    **Arguments:** `x` of shape `(N, T, inputs)`; `y` of shape `(N, outputs)` for one target after
    the last step, or `(N, R, outputs)`, one for each of the R steps of `readout` (`"all"`, or the
    steps counted from 1). `initial` is h₀, the state of every sample before the first step, of
    shape `(N, hidden)`, or `(hidden,)` if all have the same; the architecture is then made with
    `initial=True`. `labels` and `sample_weight` as in `nr.Dataset`. `loss_weight`, of shape `(R,)`
    or `(N, R)`, is how much each target counts in the squared loss: 0 after the end of a sequence
    that is shorter than others.

    **Returns:** a dataset with `x["x1"]` … `x["xT"]` of shape `(N, inputs)` and `y["y"]`, or
    `y["y3"]` for a target after step 3, of shape `(N, outputs)`; `x["h0"]` with an initial state.

    ```python
    >>> import numpy as np, neuralrace as nr
    >>> x = np.random.default_rng(0).normal(size=(10, 3, 2))
    >>> data = nr.tasks.sequences(x, x.sum(axis=1))
    >>> tuple(data.x), data.y["y"].shape
    (('x1', 'x2', 'x3'), (10, 2))
    >>> tuple(nr.tasks.sequences(x, np.cumsum(x, axis=1), readout="all").y)
    ('y1', 'y2', 'y3')
    >>> nr.tasks.sequences(x, x.sum(axis=1), initial=np.ones(8)).x["h0"].shape
    (10, 8)

    ```
    """
    steps = real_array("x", x, fix="an array of shape (N, T, inputs)")
    wanted = real_array("y", y, fix="an array of shape (N, outputs), or (N, R, outputs)")
    require(
        steps.ndim == 3 and steps.size > 0,
        "x must hold the inputs of every sample at every step",
        got=f"shape {steps.shape}",
        wanted="shape (N, T, inputs)",
        fix="x[:, :, None] for sequences of numbers",
    )
    outs = _outputs(steps.shape[1], readout)
    if wanted.ndim == 2 and len(outs) == 1:
        wanted = wanted[:, None]
    require(
        wanted.ndim == 3 and wanted.shape[:2] == (len(steps), len(outs)) and wanted.size > 0,
        "y must hold a target of every sample for every step that has an output",
        got=f"shape {wanted.shape} for {len(outs)} of {steps.shape[1]} steps",
        wanted=f"shape ({len(steps)}, {len(outs)}, outputs)",
        fix="readout says which steps have an output: 'last', 'all' or steps counted from 1",
    )
    count = None
    if loss_weight is not None:
        counts = real_array("loss_weight", loss_weight, fix="one number per step with an output")
        require(
            counts.shape in ((len(outs),), wanted.shape[:2]),
            "loss_weight must have one number for every step that has an output",
            got=f"shape {counts.shape}",
            wanted=f"shape ({len(outs)},) or {wanted.shape[:2]}",
            fix="readout says which steps have an output",
        )
        count = {name: counts[..., r] for r, name in enumerate(outs)}
    before = {} if initial is None else {"h0": _before(initial, len(steps))}
    return Dataset(
        {f"x{t + 1}": steps[:, t] for t in range(steps.shape[1])} | before,
        {name: wanted[:, r] for r, name in enumerate(outs)},
        sample_weight=sample_weight,
        labels=labels,
        loss_weight=count,
    )


@door
def sequence_teacher(
    inputs: Count = 5,
    outputs: Count = 4,
    steps: Count = 6,
    strengths: Sequence[float] = (1.0, 0.8, 0.6, 0.4),
    decays: Sequence[float] = (0.9, 0.7, 0.5, 0.3),
    readout: str | Sequence[int] = "last",
    *,
    samples: Count | None = None,
    key: Key = 0,
) -> Dataset:
    """A linear teacher of modes that forget: y_T = Σ_k c_k u_k Σ_t λ_k^{T−t} v_kᵀ x_t.

    Inputs are white: of mean 0 and variance 1, independent of each other and between steps. So
    Σ^{y x_t} = Σ_k c_k λ_k^{T−t} u_k v_kᵀ, of which mode k has the part c_k λ_k^{T−t} at step t.

    **Arguments:** `strengths`, c_k, and `decays`, λ_k, one of each per mode; u_k and v_k are
    orthonormal, drawn by `key`. `readout` as in `sequences`: a target after step r has r for T.
    `samples` draws that many Gaussian samples; by default 2 · steps · inputs samples have
    exactly these moments, which is all that a linear network sees.

    **Returns:** as `sequences`.

    ```python
    >>> import numpy as np
    >>> from neuralrace import tasks
    >>> data = tasks.sequence_teacher(3, 2, steps=4, strengths=(2, 1), decays=(0.5, 1))
    >>> seen = data.y["y"].T @ data.x["x3"] / data.n_samples
    >>> np.linalg.svd(seen, compute_uv=False).round(12)
    array([1., 1.])

    ```
    """
    c = real_array("strengths", strengths, fix="one number per mode, such as (1.0, 0.5)")
    decay = real_array("decays", decays, fix="one number per mode, such as (0.9, 0.5)")
    most = min(inputs, outputs)
    require(
        c.ndim == 1 and c.shape == decay.shape and 0 < len(c) <= most,
        "strengths and decays must have one number for each mode",
        got=f"shapes {c.shape} and {decay.shape}",
        wanted=f"the same number of both, from 1 to {most}, the smaller of inputs and outputs",
        fix="leave out modes, or raise inputs and outputs",
    )
    rng = generator(key)
    u, v = (np.linalg.qr(rng.normal(size=(n, len(c))))[0] for n in (outputs, inputs))
    x = _white(steps * inputs, samples, rng).reshape(-1, steps, inputs)
    y = []
    for end in _outputs(steps, readout).values():
        kept = c * decay ** np.arange(end - 1, -1, -1)[:, None]
        y.append(np.einsum("ntk,tk->nk", x[:, :end] @ v, kept) @ u.T)
    return sequences(x, np.stack(y, axis=1), readout)


@door
def integration(
    inputs: Count = 1,
    steps: Count = 6,
    readout: str | Sequence[int] = "last",
    *,
    keep: Finite = 1.0,
    samples: Count | None = None,
    key: Key = 0,
) -> Dataset:
    """Report the sum of all inputs so far: y_T = Σ_t keep^{T−t} x_t, for white inputs.

    `keep` below 1 lets the sum leak. Other arguments and what is returned as in
    `sequence_teacher`, whose modes these are with equal strengths.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.integration(inputs=2, steps=3)
    >>> bool((data.y["y"] == data.x["x1"] + data.x["x2"] + data.x["x3"]).all())
    True

    ```
    """
    x = _white(steps * inputs, samples, generator(key)).reshape(-1, steps, inputs)
    sums = [x[:, 0]]
    for t in range(1, steps):
        sums.append(keep * sums[-1] + x[:, t])
    ends = _outputs(steps, readout).values()
    return sequences(x, np.stack([sums[end - 1] for end in ends], axis=1), readout)


@door
def delayed_report(
    inputs: Count = 1,
    steps: Count = 6,
    shown: Count = 1,
    *,
    distractors: bool = False,
    samples: Count | None = None,
    key: Key = 0,
) -> Dataset:
    """Report after the last step what was shown at step `shown`: y = x_shown, for white inputs.

    Other steps show nothing; `distractors=True` lets them show white inputs of their own, which
    are to be ignored. `samples` and `key` as in `sequence_teacher`.

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.delayed_report(steps=4)
    >>> bool((data.y["y"] == data.x["x1"]).all()), data.x["x3"].any()
    (True, np.False_)

    ```
    """
    require(
        shown <= steps,
        "shown must be one of the steps",
        got=f"shown={shown}, steps={steps}",
        wanted=f"a step from 1 to {steps}",
        fix="raise steps, or lower shown",
    )
    rng = generator(key)
    if distractors:
        x = _white(steps * inputs, samples, rng).reshape(-1, steps, inputs)
    else:
        item = _white(inputs, samples, rng)
        x = np.zeros((len(item), steps, inputs))
        x[:, shown - 1] = item
    return sequences(x, x[:, shown - 1])


@door
def cued_accumulation(
    channels: Count = 2,
    steps: Count = 8,
    *,
    cue: NotNegative = 1.0,
    cue_steps: Count | None = None,
    samples: Count | None = None,
    key: Key = 0,
) -> Dataset:
    """Sum the channel that a cue names: y = Σ_t x_{t,c}, with c the cue, for white channels.

    At every step a network sees all channels and the cue, which is `cue` at place c and 0
    elsewhere, for the first `cue_steps` steps (by default all). Cues are equally likely.

    **Arguments:** `samples` draws that many Gaussian samples for each cue, by `key`; by default
    2 · steps · channels samples for each cue have exactly their moments.

    **Returns:** as `sequences`, with inputs of size 2 · channels (channels, then cues) and the
    label `cue` (1 … channels).

    **Gatings:** one pathway per cue (`pathway_per_cue`), or one for all (`common_pathway`).

    ```python
    >>> from neuralrace import tasks
    >>> data = tasks.cued_accumulation(steps=3, cue=0.5)
    >>> first = data.mask(cue=1)
    >>> seen = sum(data.x[f"x{t}"][:, 0] for t in (1, 2, 3))
    >>> bool((data.y["y"][first, 0] == seen[first]).all()), data.x["x1"][first][0, 2:]
    (True, array([0.5, 0. ]))

    ```
    """
    shown = steps if cue_steps is None else cue_steps
    require(
        shown <= steps,
        "cue_steps must not be more than steps",
        got=f"cue_steps={shown}, steps={steps}",
        wanted=f"from 1 to {steps}",
        fix="leave it out to show the cue at every step",
    )
    rng = generator(key)
    values = [
        _white(steps * channels, samples, rng).reshape(-1, steps, channels) for _ in range(channels)
    ]
    cues = np.repeat(np.arange(channels), [len(each) for each in values])
    seen = np.concatenate(values)
    told = np.zeros_like(seen)
    told[:, :shown] = cue * np.eye(channels)[cues][:, None]
    y = np.take_along_axis(seen.sum(axis=1), cues[:, None], axis=1)
    return sequences(np.concatenate([seen, told], axis=2), y, labels={"cue": cues + 1})


@door
def recurrent_pathways(
    data: Dataset,
    masks: Mapping[str, ArrayLike | None],
    hidden: Count = 40,
    *,
    leak: float | None = None,
) -> tuple[Architecture, Dataset]:
    """Recurrent pathways side by side, each with weights of its own and on for some samples.

    The recurrent counterpart of `nr.pathways`: every pathway is the hidden part of
    `Architecture.recurrent`, and all write to the same outputs.

    **Arguments:** `data` as `sequences` returns it. `masks` says for each pathway where it is on:
    `None` for always, an array of shape `(N,)`, or `(N, T)` for a gate of its own at each step.
    `hidden` is the width of each pathway, `leak` as in `Architecture.recurrent`.

    **Returns:** the architecture, with nodes `name_h1` … `name_hT` and ties `name_Wx`, `name_Wh`
    and `name_Wy` for each pathway, and the dataset with these gates.

    ```python
    >>> from neuralrace import tasks
    >>> base = tasks.cued_accumulation(steps=3)
    >>> arch, data = tasks.recurrent_pathways(base, {"common": None, "first": base.mask(cue=1)})
    >>> tuple(arch.ties)
    ('common_Wx', 'common_Wh', 'common_Wy', 'first_Wx', 'first_Wh', 'first_Wy')
    >>> tuple(data.gates)
    ('first_h1', 'first_h2', 'first_h3')

    ```
    """
    require(
        len(masks) > 0,
        "masks name no pathways",
        got="empty masks",
        wanted="{name: mask or None}",
        fix="name at least one pathway, for example {'common': None}",
    )
    one = recurrent_of(data, hidden, leak)
    sizes = {v: one.sizes[v] for v in (*one.inputs, *one.outputs)}
    edges: dict[str, tuple[str, str]] = {}
    ties: dict[str, list[str]] = {}
    frozen, gates = {}, {}
    for name, mask in masks.items():
        own = lambda v, name=name: f"{name}_{v}" if v in one.hidden else v
        sizes |= {own(v): hidden for v in one.hidden}
        edges |= {f"{name}_{e}": (own(s), own(t)) for e, (s, t) in one.edges.items()}
        ties |= {f"{name}_{tie}": [f"{name}_{e}" for e in es] for tie, es in one.ties.items()}
        frozen |= {f"{name}_{e}": value for e, value in one.frozen.items()}
        if mask is not None:
            fix = "one number per sample, or one per sample and step"
            gate = real_array(f"the mask of {name!r}", mask, fix=fix)
            wanted = (data.n_samples, len(one.hidden))
            require(
                gate.shape in (wanted, wanted[:1]),
                f"the mask of {name!r} in masks does not fit the samples",
                got=f"shape {gate.shape}",
                wanted=f"shape {wanted[:1]} or {wanted}",
                fix=fix,
            )
            each = np.broadcast_to(gate.reshape(len(gate), -1), wanted)
            gates |= {own(v): each[:, t] for t, v in enumerate(one.hidden)}
    return Architecture(sizes, edges, ties, frozen), data.gated(gates)


@door
def pathway_per_cue(data: Dataset, hidden: Count = 40) -> tuple[Architecture, Dataset]:
    """One recurrent pathway per cue, each of width `hidden` and on where the cue is its own.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.pathway_per_cue(tasks.cued_accumulation(steps=2))
    >>> arch.hidden
    ('cue1_h1', 'cue1_h2', 'cue2_h1', 'cue2_h2')

    ```
    """
    cues = label(data, "cue", "tasks.cued_accumulation()")
    return recurrent_pathways(data, {f"cue{c}": cues == c for c in np.unique(cues)}, hidden)


@door
def common_pathway(data: Dataset, hidden: Count = 40) -> tuple[Architecture, Dataset]:
    """One recurrent pathway that is always on: a recurrent linear network without gates.

    ```python
    >>> from neuralrace import tasks
    >>> arch, data = tasks.common_pathway(tasks.cued_accumulation(steps=2))
    >>> arch.hidden, data.gates
    (('common_h1', 'common_h2'), {})

    ```
    """
    return recurrent_pathways(data, {"common": None}, hidden)


def _before(initial: ArrayLike, samples: int) -> Rows:
    """The state of every sample before the first step."""
    fix = "an array of shape (N, hidden), or (hidden,) if all samples have the same"
    state = real_array("initial", initial, fix=fix)
    require(
        state.ndim in (1, 2) and state.size > 0 and (state.ndim == 1 or len(state) == samples),
        "initial must hold the state of every sample before the first step",
        got=f"shape {state.shape}",
        wanted=f"shape ({samples}, hidden) or (hidden,)",
        fix=fix,
    )
    return np.broadcast_to(state, (samples, state.shape[-1]))


def _outputs(steps: int, readout: str | Sequence[int]) -> dict[str, int]:
    """The output nodes of a recurrent network and the step after which each is read."""
    arch = Architecture.recurrent(1, 1, 1, steps, readout)
    return {y: int(arch.edges[e][0][1:]) for y in arch.outputs for e in arch.incoming[y]}


def recurrent_of(data: Dataset, hidden: int, leak: float | None = None) -> Architecture:
    """The recurrent network of a dataset of sequences, or an error where it is another one."""
    steps = len(data.x)
    ends = [y[1:] for y in data.y]
    named = {*data.x} == {f"x{t}" for t in range(1, steps + 1)}
    sizes = {len({value.shape[1] for value in side.values()}) for side in (data.x, data.y)}
    require(
        named and sizes == {1} and (ends == [""] or all(end.isdigit() for end in ends)),
        "data must be one of sequences",
        got=f"x for {listed(data.x)}, y for {listed(data.y)}",
        wanted="x for 'x1' … 'xT' of one size, y for 'y', or for 'y1' … 'yT' of one size",
        fix="make it with tasks.sequences(x, y)",
    )
    readout = "last" if ends == [""] else [int(end) for end in ends]
    size = [next(iter(side.values())).shape[1] for side in (data.x, data.y)]
    return Architecture.recurrent(size[0], hidden, size[1], steps, readout, leak=leak)


def _white(features: int, samples: int | None, rng: np.random.Generator) -> Rows:
    """Samples of mean 0 and covariance I: drawn, or the fewest pairs that have them exactly."""
    if samples is not None:
        return rng.normal(size=(samples, features))
    axes = np.sqrt(features) * np.eye(features)
    return np.concatenate([axes, -axes])
