"""Routing networks that learn from the images themselves: cross-entropy, batches, leaky ReLU."""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from papers.nrr.bounded import Batch, State
from papers.nrr.routed import LEARNED, RoutedNetwork, lengths, rectified, timed

LOOK = 1000
"""Training images that are looked at together for the loss that is recorded."""

SOFTMAX = 0.5
"""The largest eigenvalue that diag(p) − ppᵀ, the Hessian of cross-entropy, can have."""


@final
class RoutedImages(RoutedNetwork):
    """A routing network with cross-entropy, on batches of images.

    Each step shows the images of a batch through the transforms of all input domains. With
    `sampled`, each input domain answers through that many of its trained outputs, drawn anew at
    every step, all weighted so that the gradient is right on average; the cost is then independent
    of K. Both hidden layers are leaky ReLU with slope `leak` below 0; 1 is a linear network.
    Products are computed in `dtype`, sums and weights in float32. `images` are shown through
    `tables`, or as they are; or there is one set of them for every input domain.
    """

    images: Float[Array, "N pixels"] | Float[Array, "M N pixels"] = eqx.field(kw_only=True)
    labels: Int[Array, " N"] = eqx.field(kw_only=True)
    tables: Int[Array, "M pixels"] | None = eqx.field(kw_only=True)
    spread: Float[Array, ""] = eqx.field(kw_only=True)
    sampled: int | None = eqx.field(static=True, kw_only=True)
    dtype: str = eqx.field(static=True, kw_only=True)

    def loss(self, state: State) -> Float[Array, ""]:
        M = len(self.routes)
        weights = [state[name] for name in LEARNED]
        share, N = self.routes / jnp.sum(self.routes), len(self.labels)
        size = min(LOOK, N)

        def of_some(i: Array, low: Array) -> Float[Array, ""]:
            A, W, C = weights
            index = low + jnp.arange(size)  # an index past the last image counts 0
            labels = self.labels[index % N]
            table = None if self.tables is None else self.tables[i][None]
            own = self.images[i] if self.images.ndim == 3 else self.images
            shown = moved(own[index % N], table)[0].astype(A.dtype)
            second = rectified(rectified(shown @ A[i].T, self.leak) @ W.T, self.leak)
            answers = jnp.einsum("bh,jch->bjc", second, C)
            lost = jax.nn.logsumexp(answers, axis=-1) - _chosen(answers, labels[:, None])
            return jnp.einsum("j,bj,b->", share[i], lost, jnp.asarray(index < N, lost.dtype)) / N

        parts = jnp.stack([each.ravel() for each in jnp.mgrid[:M, 0:N:size]], axis=1)
        return jnp.sum(jax.lax.map(lambda part: of_some(*part), parts))

    def loss_and_step(
        self, state: State, rate: float | Array, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State]:
        assert batch is not None
        x, labels = self._shown(batch)
        outputs, share = self._outputs(batch)
        present = batch.present / jnp.maximum(jnp.sum(batch.present), 1.0)

        def lost(weights: State) -> Float[Array, ""]:
            second = self._hidden(weights, x)[1]
            chosen = weights["decoders"].astype(self.dtype)
            if outputs is None:
                answers = jnp.einsum("ibh,jch->ibjc", second, chosen)
            else:
                answers = jnp.einsum("ibh,isch->ibsc", second, chosen[outputs])
            answers = answers.astype(jnp.float32)
            each = jax.nn.logsumexp(answers, axis=-1) - _chosen(answers, labels[None, :, None])
            return jnp.einsum("ibs,is,b->", each, share, present)

        weights = {name: state[name] for name in LEARNED}
        loss, back = jax.vjp(lost, weights)
        (change,) = back(jnp.asarray(-rate, loss.dtype))
        return loss, change | timed(state, rate)

    def curvature(
        self, state: State, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], PyTree]:
        """As that of `RoutedMoments`, with the layers' activity on the batch, times ½ (softmax)."""
        assert batch is not None
        x, _ = self._shown(batch)
        W, C, probe = state["hidden"], state["decoders"], state["probe"]
        first, second = self._hidden(state, x)
        F = C @ W
        seen = lambda h, v: jnp.einsum("ibh,ib->ih", h, jnp.einsum("ibh,ih->ib", h, v)) / h.shape[1]
        low = self.dtype
        applied = {
            "in": jnp.einsum(
                "jch,jci->ih",
                F,
                jnp.einsum("jch,ih->jci", F, probe["in"]) * self.routes.T[:, None, :],
            ),
            "mid": seen(first, probe["mid"].astype(low)).astype(jnp.float32),
            "out": seen(second, probe["out"].astype(low)).astype(jnp.float32),
            "all": jnp.einsum("jch,jc->h", C, jnp.einsum("jch,h->jc", C, probe["all"])),
        }
        sizes, turned = lengths(applied)
        reaching = lambda of_inputs: jnp.max(of_inputs @ self.routes)
        whole = jnp.max(sizes["in"]) * self.spread + reaching(sizes["out"])
        whole += sizes["all"] * reaching(sizes["mid"])
        return SOFTMAX * whole / jnp.sum(self.routes), turned

    def _shown(self, batch: Batch) -> tuple[Float[Array, "domains B D"], Int[Array, " B"]]:
        labels = self.labels[batch.index]
        if self.images.ndim == 3:
            return self.images[:, batch.index], labels
        return moved(self.images[batch.index], self.tables), labels

    def _hidden(self, weights: State, x: Float[Array, "domains B D"]) -> tuple[Array, Array]:
        """The two hidden layers, of shape (M, B, H)."""
        A, W = (weights[name].astype(self.dtype) for name in ("encoders", "hidden"))
        M, H, D = A.shape
        if len(x) == 1:  # all encoders see the same: one product
            flat = x[0].astype(self.dtype) @ A.reshape(M * H, D).T
            first = flat.reshape(-1, M, H).swapaxes(0, 1)
        else:
            first = x.astype(self.dtype) @ A.mT
        first = rectified(first, self.leak)
        return first, rectified(first @ W.T, self.leak)

    def _outputs(self, batch: Batch) -> tuple[Int[Array, "M S"] | None, Float[Array, "M S"]]:
        """Through which outputs each input answers, and how much each of them counts."""
        trained = self.routes / jnp.sum(self.routes)
        if self.sampled is None or self.sampled >= len(self.routes):
            return None, trained
        seed = jnp.sum(batch.index * jnp.arange(1, len(batch.index) + 1))
        luck = jax.random.uniform(jax.random.key(seed.astype(jnp.uint32)), self.routes.shape)
        height, outputs = jax.lax.top_k(jnp.where(self.routes > 0, luck, -1.0), self.sampled)
        there = (height >= 0).astype(self.routes.dtype)
        count = jnp.maximum(jnp.sum(there, axis=1, keepdims=True), 1.0)
        return outputs, there / count * jnp.sum(trained, axis=1, keepdims=True)


def moved(
    images: Float[Array, "B pixels"], tables: Int[Array, "M pixels"] | None
) -> Float[Array, "domains B pixels"]:
    """The images through every transform, or as they are where there is none."""
    if tables is None:
        return images[None]
    through = lambda table: jnp.where(table < 0, 0, images[:, table])
    return jax.vmap(through)(tables)


def _chosen(answers: Float[Array, "*rows classes"], labels: Array) -> Float[Array, "*rows"]:
    """The answer at the class of each sample."""
    there = jax.nn.one_hot(labels, answers.shape[-1], dtype=answers.dtype)
    return jnp.sum(answers * there, axis=-1)
