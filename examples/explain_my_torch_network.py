"""A network trained in PyTorch: what can be said about it, and what cannot."""

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import neuralrace as nr

out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
out.mkdir(parents=True, exist_ok=True)

x, digit = load_digits(n_class=3, return_X_y=True)
data = nr.Dataset({"x": x / 16}, {"y": np.eye(3)[digit]}, labels={"digit": digit})
data = data.sorted_by("digit")
folder = Path(__file__).parent / "digits_in_torch"  # recorded by the lines below

if importlib.util.find_spec("torch"):
    import torch
    from torch import nn

    inputs, targets = (torch.tensor(a, dtype=torch.float32) for a in (data.x["x"], data.y["y"]))
    torch.manual_seed(0)
    hidden = (nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU())
    model = nn.Sequential(*hidden, nn.Linear(50, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    folder = Path(tempfile.mkdtemp()) / "recording"
    recorder = nr.TorchRecorder(model, data, every=50, folder=folder)
    for _ in range(300):  # your own loop; the recorder needs one line
        batch = torch.randint(len(inputs), (32,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs[batch]), targets[batch]).backward()
        optimizer.step()
        recorder.step()

net, run = nr.from_recording(folder, data, loss="cross_entropy")
print(f"loss {run.loss.round(4).tolist()} at steps {run.steps.tolist()}")
print(nr.reln.activity(run, data))  # which neurons count, their patterns, when they switched
found = nr.reln.discover(run, data, pathways=4)  # clusters of patterns, and what cannot be said
print(found)
found.plot("h1", label="digit").figure.savefig(out / "explain_my_torch_network.png")
