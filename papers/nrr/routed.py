"""Routing networks on images, as something that learns from second moments alone.

A network with M encoders A_i, one shared hidden matrix W and M decoders C_j answers C_j W A_i x to
input x of domain i. Trained with squared loss it sees of the images only Σ_i = ⟨x xᵀ⟩ and
P_i = ⟨y xᵀ⟩: N images cost what none cost.
"""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from papers.nrr.bounded import Batch, State, TimedSystem

LEARNED = ("encoders", "hidden", "decoders")
"""The weights of a routing network: (M, H, D), (H, H) and (M, classes, H)."""


class RoutedNetwork(TimedSystem):
    """What all routing networks on images share: routes, test images and accuracy.

    `routes[i, j]` is 1 where input i is trained with output j. `test` holds the test images,
    `(domains, T, D)`, one set for all domains where they are alike.
    """

    routes: Float[Array, "M M"]
    test: Float[Array, "domains T D"]
    test_labels: Int[Array, " T"]
    leak: float = eqx.field(static=True, default=1.0)

    def observe(self, state: State) -> dict[str, PyTree]:
        """The accuracy on test images, the mean of trained and of untrained routes."""
        right = accuracies(state, self.test, self.test_labels, self.leak)
        trained = self.routes / jnp.sum(self.routes)
        rest = 1.0 - self.routes
        untrained = rest / jnp.maximum(jnp.sum(rest), 1.0)
        return {
            "elapsed": state["time"],
            "trained": jnp.sum(trained * right),
            "untrained": jnp.sum(untrained * right),
        }

    def probe(self, state: State) -> PyTree:
        """Unit vectors, one per encoder, decoder and hidden layer."""
        M, H, _ = state["encoders"].shape
        dtype = state["encoders"].dtype
        whole = jax.random.normal(jax.random.key(0), (3 * M + 1, H), dtype)
        whole /= jnp.linalg.norm(whole, axis=1, keepdims=True)
        return {
            "in": whole[:M],
            "mid": whole[M : 2 * M],
            "out": whole[2 * M : -1],
            "all": whole[-1],
        }


def accuracies(
    weights: State,
    test: Float[Array, "domains T D"],
    labels: Int[Array, " T"],
    leak: float = 1.0,
) -> Float[Array, "M M"]:
    """The share of test images that every route (input, output) classifies correctly."""
    M = len(weights["encoders"])
    maps = weights["decoders"].astype(jnp.float32)
    hidden = weights["hidden"].astype(jnp.float32)

    def of_input(i: Array) -> Float[Array, " M"]:
        shown = test[jnp.minimum(i, len(test) - 1)]
        first = rectified(shown @ weights["encoders"][i].astype(jnp.float32).T, leak)
        second = rectified(first @ hidden.T, leak)
        answers = jnp.argmax(jnp.einsum("th,jch->tjc", second, maps), axis=-1)
        return jnp.mean(answers == labels[:, None], axis=0, dtype=jnp.float32)

    return jax.lax.map(of_input, jnp.arange(M))


def rectified(x: Array, leak: float) -> Array:
    """Leaky ReLU; with a leak of 1 the identity."""
    return x if leak == 1.0 else jnp.where(x > 0, x, leak * x)


@final
class RoutedMoments(RoutedNetwork):
    """A linear routing network with squared loss, seen through second moments.

    L = ½ n Σ_ij G_ij ⟨‖y − F_j A_i x_i‖²⟩ with F_j = C_j W, G the routes and n = 1/ΣG. With
    N_i = Σ_j G_ij F_jᵀF_j, B_i = Σ_j G_ij F_jᵀ, T_i = A_i Σ_i A_iᵀ and R_i = P_i A_iᵀ:
    −∂L/∂A_i = n (B_i P_i − N_i A_i Σ_i) and
    −∂L/∂F_j = n Σ_i G_ij (R_i − F_j T_i) (NRR Eq. 4, with the sums over paths done first).
    The cost depends neither on the number of images nor on that of trained routes.
    """

    variance: Float[Array, "domains D"] = eqx.field(kw_only=True)
    cross: Float[Array, "domains classes D"] = eqx.field(kw_only=True)
    power: Float[Array, ""] = eqx.field(kw_only=True)

    def loss(self, state: State) -> Float[Array, ""]:
        _, N, B = self._forward(state)
        T, R = self._encoded(state)
        return self._loss(N, B, T, R)

    def loss_and_step(
        self, state: State, rate: float | Array, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], State]:
        A, W, C = (state[name] for name in LEARNED)
        F, N, B = self._forward(state)
        T, R = self._encoded(state)
        n = (rate / jnp.sum(self.routes)).astype(A.dtype)
        to_A = (n * B) @ self.cross - (n * N) @ (A * self.variance[:, None, :])
        to_F = n * (self._to_outputs(R) - F @ self._to_outputs(T))
        change = {
            "encoders": to_A,
            "hidden": jnp.einsum("jch,jck->hk", C, to_F),
            "decoders": to_F @ W.T,
        }
        return self._loss(N, B, T, R), change | timed(state, rate)

    def curvature(
        self, state: State, batch: Batch | None = None
    ) -> tuple[Float[Array, ""], PyTree]:
        """The sum of the bounds for encoders, hidden layer and decoders alone.

        Encoder i: λ(N_i) λ(Σ_i); decoder j: λ(W X_j Wᵀ) with X_j = Σ_i G_ij T_i; hidden layer:
        λ(Σ_j C_jᵀC_j) max_j λ(X_j); all times n.
        """
        W, C, probe = state["hidden"], state["decoders"], state["probe"]
        _, N, _ = self._forward(state)
        T, _ = self._encoded(state)
        X = self._to_outputs(T)
        applied = {
            "in": jnp.einsum("ihk,ik->ih", N, probe["in"]),
            "mid": jnp.einsum("jhk,jk->jh", X, probe["mid"]),
            "out": jnp.einsum("jhk,jk->jh", X, probe["out"] @ W) @ W.T,
            "all": jnp.einsum("jch,jc->h", C, jnp.einsum("jch,h->jc", C, probe["all"])),
        }
        sizes, turned = lengths(applied)
        first = jnp.max(sizes["in"] * jnp.max(self.variance, axis=-1))
        whole = first + jnp.max(sizes["out"]) + sizes["all"] * jnp.max(sizes["mid"])
        return whole / jnp.sum(self.routes), turned

    def _forward(self, state: State) -> tuple[Array, Array, Array]:
        """F_j, then N_i and B_i: what the outputs of every input look like from below."""
        F = state["decoders"] @ state["hidden"]
        N = jnp.einsum("ij,jhk->ihk", self.routes, F.mT @ F)
        return F, N, jnp.einsum("ij,jch->ihc", self.routes, F)

    def _encoded(self, state: State) -> tuple[Array, Array]:
        """T_i and R_i: what every input looks like from above."""
        A = state["encoders"]
        T = (A * self.variance[:, None, :]) @ A.mT
        return T, (A @ self.cross.mT).mT

    def _to_outputs(self, of_inputs: Float[Array, "M h k"]) -> Float[Array, "M h k"]:
        return jnp.einsum("ij,ihk->jhk", self.routes, of_inputs)

    def _loss(self, N: Array, B: Array, T: Array, R: Array) -> Float[Array, ""]:
        n = 1.0 / jnp.sum(self.routes)
        return 0.5 * (self.power + n * (jnp.sum(N * T) - 2 * jnp.sum(B.mT * R)))


def timed(state: State, rate: float | Array) -> State:
    """How the parts of a state that are no weights move: the clock by the rate, probes not."""
    rest = {name: leaf for name, leaf in state.items() if name not in LEARNED}
    still = jax.tree.map(jnp.zeros_like, rest)
    return still | ({"time": still["time"] + rate} if "time" in still else {})


def lengths(vectors: PyTree) -> tuple[PyTree, PyTree]:
    """The length of every vector, and the vectors of length one."""
    sizes = jax.tree.map(lambda v: jnp.linalg.norm(v, axis=-1), vectors)
    tiny = jnp.finfo(jnp.float32).tiny
    turned = jax.tree.map(lambda v, s: v / jnp.maximum(s, tiny)[..., None], vectors, sizes)
    return sizes, turned
