"""Your own ReLU network: which gated network does it behave like, and how closely?"""

import sys
from pathlib import Path

import jax

import neuralrace as nr

jax.config.update("jax_enable_x64", True)
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

data = nr.tasks.extended_xor(0.4)  # your dataset here
relu = nr.ReLUNetwork((3, 64, 1))  # your network; biases, leaks and any graph are possible
record = {"weights": True, **nr.reln.evidence(relu, data)}
runs = nr.train_ensemble(
    relu,
    data,
    key=jax.random.key(0),
    seeds=2,
    scale=1e-3,
    learning_rate=0.1,
    steps=300,
    record_every=3,
    record=record,
)
# Its gates, found in its activity alone (MHS Algorithm 1); "elbow" chooses how many.
first, second = (runs.isel(seed=i) for i in range(2))
found = nr.reln.discover(first, data, pathways="elbow", most=4)
print(f"{found}\n{found.patterns['h']}")

# Does the gated network with these gates, from the same initial weights, learn the same way?
gated = found.train(record={"outputs": True})
print(nr.reln.certify(first, gated, floor=second))
found.plot().figure.savefig(out / "explain_my_relu_network.png")
