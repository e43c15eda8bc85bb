"""As much of PyTorch's modules as the import reads, for tests where PyTorch is not installed."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


class Tensor:
    """A tensor: an array with a device and a kind of number of its own."""

    def __init__(self, array, device="cpu", dtype=None):
        self.array = np.asarray(array)
        self.device = SimpleNamespace(type=device)
        self.dtype = f"torch.{dtype or self.array.dtype.name}"

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.array

    def data_ptr(self):
        return self.array.ctypes.data


class Module:
    training = False

    def __init__(self, *modules, **named):
        self._modules = {str(k): m for k, m in enumerate(modules)} | named
        self._parameters = {}

    def state_dict(self):
        found = dict(self._parameters)
        for name, module in self._modules.items():
            found |= {f"{name}.{key}": value for key, value in module.state_dict().items()}
        return found

    def train(self):
        self.training = True
        for module in self._modules.values():
            module.train()
        return self

    def __call__(self, x):
        for module in self._modules.values():
            x = module(x)
        return x


class Sequential(Module): ...


class Linear(Module):
    def __init__(self, n_in, n_out, bias=True, seed=0, dtype=np.float64):
        super().__init__()
        rng = np.random.default_rng(seed)
        self._parameters = {"weight": Tensor(rng.normal(size=(n_out, n_in)).astype(dtype))}
        if bias:
            self._parameters["bias"] = Tensor(rng.normal(size=n_out).astype(dtype))

    def __call__(self, x):
        out = x @ self._parameters["weight"].array.T
        return out + self._parameters["bias"].array if "bias" in self._parameters else out


class RNN(Module):
    """A recurrent layer of one cell, (N, T, inputs) → (N, T, hidden), with PyTorch's names."""

    def __init__(self, n_in, n_hidden, nonlinearity="tanh", bias=True, num_layers=1, seed=0):
        super().__init__()
        self.nonlinearity, self.num_layers, self.bidirectional = nonlinearity, num_layers, False
        rng = np.random.default_rng(seed)
        sizes = {"weight_ih_l0": (n_hidden, n_in), "weight_hh_l0": (n_hidden, n_hidden)}
        sizes |= {"bias_ih_l0": (n_hidden,), "bias_hh_l0": (n_hidden,)} if bias else {}
        self._parameters = {name: Tensor(rng.normal(size=size)) for name, size in sizes.items()}

    def __call__(self, x):
        p = {name: tensor.array for name, tensor in self._parameters.items()}
        bias = p.get("bias_ih_l0", 0) + p.get("bias_hh_l0", 0)
        h, found = np.zeros((len(x), len(p["weight_hh_l0"]))), []
        for t in range(x.shape[1]):
            h = x[:, t] @ p["weight_ih_l0"].T + h @ p["weight_hh_l0"].T + bias
            h = np.maximum(h, 0) if self.nonlinearity == "relu" else np.tanh(h)
            found.append(h)
        return np.stack(found, axis=1)


class GRU(RNN): ...


class LSTM(RNN): ...


class ReLU(Module):
    def __call__(self, x):
        return np.maximum(x, 0)


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01):
        super().__init__()
        self.negative_slope = negative_slope

    def __call__(self, x):
        return np.where(x > 0, x, self.negative_slope * x)


class Dropout(Module):
    p = 0.5

    def __call__(self, x):
        return x


class Flatten(Dropout): ...


class Identity(Dropout): ...


class BatchNorm1d(Dropout): ...


class Conv2d(Dropout): ...


class MultiheadAttention(Dropout): ...


class Softmax(Dropout): ...


class Tanh(Dropout): ...


for kind in list(globals().values()):
    if isinstance(kind, type) and issubclass(kind, Module):
        kind.__module__ = "torch.nn"  # where the import looks for kinds that it knows
