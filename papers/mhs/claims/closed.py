"""The closed forms of MHS App. F and G against pathways that are trained as these assume."""

from __future__ import annotations

import numpy as np

import neuralrace as nr


def closed_forms_trained(seeds: int, steps: int) -> dict[str, list[float]]:
    """Singular values of pathways trained by themselves against their closed forms, MHS Fig. 5.

    The common pathway is trained on the targets, contextual pathways on the residual of a learned
    common one, as MHS App. F and G assume; widths and starts are those of Fig. 5. `common 3`,
    `others 3` and so on for 4 and 5 contexts: mean difference of the singular values (means over
    pathways) relative to the largest, one number per seed.
    """
    import jax
    import jax.numpy as jnp

    from papers.mhs import fig5
    from papers.mhs.contextual import case, pathway_maps, strengths
    from papers.mhs.table import gated_network, narrowed

    s = {name: setting.value for name, setting in fig5.SETTINGS.items()}
    s |= {"seeds": seeds, "steps": steps}
    found: dict[str, list[float]] = {}
    for contexts, hidden in zip(s["contexts"], s["hidden"], strict=True):
        this = case(s, {"contexts": contexts}, hidden)
        sizes = gated_network(this, "gated", s["rule"])[0].sizes
        width, other = sizes["common"], sizes["not1"]
        joined = nr.tasks.contextual(joined=True, **this.task)
        chain = nr.Architecture.chain(joined.x["x"].shape[1], width, joined.y["y"].shape[1])
        networks = {
            "common": (chain, joined),
            "others": nr.tasks.all_but_one(this.data, hidden=other),
        }
        for key, (name, (arch, data)) in enumerate(networks.items()):
            runs = nr.train_ensemble(
                nr.GDLN(arch),
                narrowed(data),
                key=jax.random.key(key),
                seeds=seeds,
                scale=this.scale,
                learning_rate=this.learning_rate,
                steps=steps,
                record_every=s["every"],
                record={"maps": pathway_maps(arch)},
                dtype=jnp.float32,
            )
            closed = fig5.closed_forms(this, width, other, runs.time)[1 + key]
            each = [np.asarray(m, float) for m in runs.values["maps"].values()]
            modes = closed.shape[1]
            trained = np.mean([[strengths([run], modes) for run in m] for m in each], axis=0)
            apart = np.abs(trained - closed).mean(axis=(1, 2)) / trained.max(axis=(1, 2))
            found[f"{name} {contexts}"] = apart.tolist()
    return found
