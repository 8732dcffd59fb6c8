"""Agents in Python. Environments, actors and replay stay in C++; the update is a function of torch tensors.

    @troupe.agent(batch_size=256, policy_layers=(256, 256), noise=0.1, metrics=("critic_loss",))
    class Mine:
        def __init__(self, env, *, learning_rate=3e-4):
            self.policy = troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs)
            ...

        def update(self, batch):
            ...
            return {"critic_loss": loss.item()}

    troupe.train("my_experiment", agent=Mine)

In C++, the actors play tanh of the output of `policy` (continuous actions) or its greatest output (a choice). `policy` must therefore be a network of
Linear and ReLU layers; for pixels, an encoder of `encoder()` comes first. Checkpoints contain the object's attributes: modules, optimizers, tensors and
numbers.
"""

from __future__ import annotations

import ast
import difflib
import inspect
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch

from troupe import _native

Schedule = Union[float, Tuple[float, float, int]]
Reduction = Callable[[np.ndarray], None]  # reduces a float32 array over the replicas, in place
Replicas = Tuple[Reduction, Reduction]  # the mean, and the first replica's values
_RESERVED = ("batch_size", "policy_layers", "noise", "epsilon")


@dataclass(frozen=True)
class AgentEnv:
    """The sizes of the environment and the settings of replay that an agent needs."""

    observation_size: int  # float32 numbers; for pixels, the number of the encoder's outputs
    observation_shape: Tuple[int, ...]  # for pixels [channels, height, width], uint8; otherwise [numbers]
    action_size: int  # numbers of a continuous action; 1 for a choice
    choices: int  # n for a choice; 0: continuous
    n_step: int  # of replay's transitions
    discount: float
    policy_layers: Tuple[int, ...]
    encoder: Optional[str]  # its kind; None: observations are states
    encoder_channels: int
    seed: int

    @property
    def outputs(self) -> int:
        """Outputs of the policy: one for each number of the action, or for each choice."""
        return self.choices or self.action_size


def mlp(inputs: int, layers: Sequence[int], outputs: int) -> torch.nn.Sequential:
    """Returns Linear layers with ReLU between them."""
    sizes = [inputs, *layers]
    parts: List[torch.nn.Module] = []
    for before, after in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(sizes[-1], outputs))


class Pixels(torch.nn.Module):
    """Converts uint8 pixels to numbers from -0.5 to 0.5."""

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return pictures.float() / 255 - 0.5


def encoder(env: AgentEnv) -> torch.nn.Sequential:
    """Returns the convolutions that the decorator's `encoder` and `encoder_channels` describe. They map uint8 [batch, *env.observation_shape] to
    [batch, env.observation_size]."""
    if env.encoder is None:
        raise ValueError("the agent sees states; give its decorator encoder=\"drq\", and the experiment the block environment.pixels")
    parts: List[torch.nn.Module] = [Pixels()]
    channels = env.observation_shape[0]
    activation, kernels = _native.encoder(env.encoder, "encoder")
    for kernel, stride in kernels:
        parts += [torch.nn.Conv2d(channels, env.encoder_channels, kernel, stride), {"elu": torch.nn.ELU, "relu": torch.nn.ReLU}[activation]()]
        channels = env.encoder_channels
    return torch.nn.Sequential(*parts, torch.nn.Flatten())


def _picture_behind(convolution: torch.nn.Conv2d, shape: Sequence[int]) -> List[int]:
    sizes = [(extent - kernel) // stride + 1 for extent, kernel, stride in zip(shape[1:], convolution.kernel_size, convolution.stride)]
    return [convolution.out_channels, *sizes]


def _schedule(key: str, value: Schedule) -> List[float]:
    numbers = list(value) if isinstance(value, (list, tuple)) else [value, value, 1]
    if len(numbers) != 3 or not all(isinstance(x, (int, float)) and x >= 0 for x in numbers) or numbers[2] < 1:
        raise ValueError(f"{key} is {value!r}; it must be a number from 0, or (start, end, agent steps)")
    return [float(x) for x in numbers]


def _reduced(tensors: Sequence[torch.Tensor], reduce: Reduction) -> None:
    """Replaces the tensors' values by their reduction over all replicas."""
    flat = torch.cat([tensor.reshape(-1).float().cpu() for tensor in tensors])
    reduce(flat.numpy())
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
        tensor.copy_(part.view_as(tensor))


def _average(optimizer: torch.optim.Optimizer, mean: Reduction) -> None:
    gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    if gradients:
        _reduced(gradients, mean)


def _numbers(part: Any, outputs: int) -> List[np.ndarray]:
    """Returns weight and bias as float32."""
    bias = part.bias if part.bias is not None else torch.zeros(outputs)
    return [part.weight.detach().cpu().float().numpy(), bias.detach().cpu().float().numpy()]


def _group_numbers(optimizer: torch.optim.Optimizer) -> Dict[str, Union[int, float]]:
    """The numbers of an optimizer's parameter groups, such as "group.0.lr"."""
    return {
        f"group.{number}.{key}": value
        for number, group in enumerate(optimizer.param_groups)
        for key, value in group.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


class _Learner:
    """Wraps an agent's object for the extension module: arrays in, arrays out."""

    def __init__(self, agent: Any, env: AgentEnv, replicas: Optional[Replicas] = None):
        self._agent, self._env = agent, env
        self._given = {name: _group_numbers(value) for name, value in self._walk() if isinstance(value, torch.optim.Optimizer)}
        if replicas is not None:
            self._join(*replicas)

    def _join(self, mean: Reduction, of_first: Reduction) -> None:
        """Copies the first replica's values to all replicas, and makes each optimizer step use the mean of their gradients."""
        for _, value in self._walk():
            if isinstance(value, torch.optim.Optimizer):
                value.register_step_pre_hook(lambda optimizer, *_: _average(optimizer, mean))
            tensors = value.state_dict().values() if isinstance(value, torch.nn.Module) else [value]
            for tensor in tensors:
                if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                    _reduced([tensor.data], of_first)

    def update(self, batch: Dict[str, np.ndarray]) -> Dict[str, float]:
        tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
        metrics = self._agent.update(tensors) or {}
        return {name: value.item() if isinstance(value, torch.Tensor) else float(value) for name, value in metrics.items()}

    def priorities(self) -> Optional[np.ndarray]:
        given = getattr(self._agent, "priorities", None)
        return None if given is None else np.asarray(torch.as_tensor(given).detach().cpu(), np.float64)

    def policy(self) -> List[np.ndarray]:
        parts = [part for part in self._agent.policy.modules() if not list(part.children())]
        convolutions = self._check_encoder(parts) if self._env.encoder else []
        kinds = (torch.nn.Linear, torch.nn.ReLU)
        others = [part for part in parts if not isinstance(part, kinds)]
        if others:
            raise TypeError(f"policy has a layer {others[0]}; the actors play Linear and ReLU layers (and add the tanh of continuous actions)")
        picture = list(self._env.observation_shape)
        arrays = []
        for convolution in convolutions:
            picture = _picture_behind(convolution, picture)
            arrays += _numbers(convolution, convolution.out_channels)
        linear = [part for part in parts if isinstance(part, torch.nn.Linear)]
        for part in linear:
            arrays += _numbers(part, part.out_features)
        if convolutions and linear:  # the actors flatten [height, width, channels]
            weight = arrays[2 * len(convolutions)]
            if weight.shape[1] == int(np.prod(picture)):
                columns = weight.reshape(-1, *picture).transpose(0, 2, 3, 1)
                arrays[2 * len(convolutions)] = np.ascontiguousarray(columns.reshape(weight.shape))
        return arrays

    def _check_encoder(self, parts: List[torch.nn.Module]) -> List[torch.nn.Conv2d]:
        """Removes the encoder's layers from `parts`. They must be the ones that the actors run."""
        wanted = [part for part in encoder(self._env).modules() if not list(part.children())]
        for number, want in enumerate(wanted):
            have = parts[number] if number < len(parts) else None
            if repr(have) != repr(want):
                raise TypeError(f"policy begins with {have} where the encoder \"{self._env.encoder}\" has {want}; begin with troupe.agents.encoder(env)")
        front = parts[: len(wanted)]
        del parts[: len(wanted)]
        return [part for part in front if isinstance(part, torch.nn.Conv2d)]

    def _walk(self) -> List[Tuple[str, Any]]:
        return sorted((name, value) for name, value in vars(self._agent).items() if name != "priorities")

    def state(self) -> Dict[str, np.ndarray]:
        out: Dict[str, np.ndarray] = {"random": torch.get_rng_state().numpy()}
        for name, value in self._walk():
            if isinstance(value, torch.nn.Module):
                for key, tensor in value.state_dict().items():
                    out[f"{name}/{key}"] = tensor.detach().cpu().numpy()
            elif isinstance(value, torch.optim.Optimizer):
                for number, moments in value.state_dict()["state"].items():
                    for key, moment in moments.items():
                        out[f"{name}/{number}/{key}"] = np.asarray(torch.as_tensor(moment).detach().cpu())
                given = self._given.get(name, {})
                for key, now in _group_numbers(value).items():
                    if key in given and now != given[key]:
                        out[f"{name}/{key}"] = np.array([given[key], now], np.float64)
            elif isinstance(value, torch.Tensor):
                out[name] = value.detach().cpu().numpy()
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                out[name] = np.array(value)
        return out

    def load(self, state: Dict[str, np.ndarray]) -> None:
        parts: Dict[str, Dict[str, torch.Tensor]] = {}
        for name, array in state.items():
            head, _, rest = name.partition("/")
            parts.setdefault(head, {})[rest] = torch.from_numpy(array)
        torch.set_rng_state(parts.pop("random")[""])
        for name, value in self._walk():
            if isinstance(value, torch.nn.Module):
                value.load_state_dict(parts.pop(name, {}))
            elif isinstance(value, torch.optim.Optimizer):
                moments: Dict[int, Dict[str, torch.Tensor]] = {}
                changed: Dict[str, torch.Tensor] = {}
                for key, tensor in parts.pop(name, {}).items():
                    if key.startswith("group."):
                        changed[key] = tensor
                        continue
                    number, _, moment = key.partition("/")
                    moments.setdefault(int(number), {})[moment] = tensor
                value.load_state_dict({**value.state_dict(), "state": moments})
                self._load_changed(name, value, changed)
            elif isinstance(value, torch.Tensor) and name in parts:
                with torch.no_grad():
                    value.copy_(parts.pop(name)[""])
            elif isinstance(value, (int, float)) and name in parts:
                setattr(self._agent, name, type(value)(parts.pop(name)[""].item()))
        if parts:
            raise ValueError(f"the checkpoint has {', '.join(sorted(parts))}, which this agent does not; resume with the agent that wrote it")

    def _load_changed(self, name: str, optimizer: torch.optim.Optimizer, changed: Dict[str, torch.Tensor]) -> None:
        """Restores the numbers of parameter groups that the agent has changed, unless it was now made with other ones."""
        for key, tensor in changed.items():
            given, now = tensor.tolist()
            _, number, word = key.split(".", 2)
            if self._given.get(name, {}).get(key) == given:
                group = optimizer.param_groups[int(number)]
                group[word] = type(group[word])(now)


class Factory:
    """Makes an agent's objects. The extension module holds a reference to it."""

    def __init__(self, made: Callable[..., Any], name: str, batch_size: int, policy_layers: Sequence[int], noise: Schedule, epsilon: Schedule, metrics: Sequence[str], discrete: bool, encoder: Optional[str], encoder_channels: int):
        self.name, self.metrics, self.discrete = name, list(metrics), discrete
        self.encoder, self.encoder_channels = encoder, encoder_channels
        if encoder is not None:
            _native.encoder(encoder, f"{name}: encoder")
        if not isinstance(encoder_channels, int) or not 1 <= encoder_channels <= 4096:
            raise ValueError(f"{name}: encoder_channels is {encoder_channels!r}; it must be a whole number from 1 to 4096")
        self.help = (inspect.getdoc(made) or f"{name}, an agent in Python").splitlines()[0]
        self._made = made
        self._defaults = {"batch_size": batch_size, "policy_layers": tuple(policy_layers), "noise": noise, "epsilon": epsilon}
        parameters = list(inspect.signature(made).parameters.values())
        self._options = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        if not parameters or parameters[0].kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"{name}: __init__ must take the environment first: def __init__(self, env, *, learning_rate=3e-4)")
        clash = sorted(set(self._options) & set(_RESERVED))
        if clash:
            raise TypeError(f"{name}: __init__ has an option {clash[0]}, which is the decorator's; it is in env or not needed")

    def _split(self, options: Dict[str, str]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        common, own = dict(self._defaults), {}
        for key, text in options.items():
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                value = text
            if key in _RESERVED:
                common[key] = value
            elif key in self._options:
                own[key] = value
            else:
                near = difflib.get_close_matches(key, [*_RESERVED, *self._options], 1)
                raise ValueError(f"{key} is not an option of {self.name}" + (f"; did you mean {near[0]}?" if near else ""))
        return common, own

    def settings(self, options: Dict[str, str]) -> Dict[str, Any]:
        common, _ = self._split(options)
        layers, batch = common["policy_layers"], common["batch_size"]
        if not isinstance(batch, int) or not 1 <= batch <= 1 << 20:
            raise ValueError(f"batch_size is {batch!r}; it must be a whole number from 1 to {1 << 20}")
        if not isinstance(layers, (list, tuple)) or not layers or not all(isinstance(n, int) and 1 <= n <= 65536 for n in layers):
            raise ValueError(f"policy_layers is {layers!r}; it must be widths such as (256, 256)")
        return {
            "batch_size": batch,
            "layers": list(layers),
            "noise": _schedule("noise", common["noise"]),
            "epsilon": _schedule("epsilon", common["epsilon"]),
            "discrete": self.discrete,
            "encoder": self.encoder or "",
            "encoder_channels": self.encoder_channels,
        }

    def make(self, options: Dict[str, str], environment: Dict[str, Any], seed: int, replicas: Optional[Replicas]) -> _Learner:
        common, own = self._split(options)
        torch.manual_seed(seed % (1 << 63))
        environment["observation_shape"] = tuple(environment["observation_shape"])
        layers = tuple(common["policy_layers"])
        env = AgentEnv(**environment, policy_layers=layers, encoder=self.encoder, encoder_channels=self.encoder_channels, seed=seed)
        made = self._made(env, **own)
        for attribute in ("update", "policy"):
            if not hasattr(made, attribute):
                raise TypeError(f"{self.name} has no `{attribute}`; an agent has update(batch) and policy, a network of Linear and ReLU layers")
        return _Learner(made, env, replicas)


def agent(
    *,
    batch_size: int,
    policy_layers: Sequence[int] = (256, 256),
    noise: Schedule = 0.1,
    epsilon: Schedule = (1.0, 0.05, 10_000),
    metrics: Sequence[str] = (),
    discrete: bool = False,
    encoder: Optional[str] = None,
    encoder_channels: int = 32,
    name: Optional[str] = None,
) -> Callable[[Any], Any]:
    """Turns a class into an agent for `troupe.train(…, agent=…)`.

    An update uses `batch_size` transitions. `policy_layers` are the widths of `policy`. `noise` is the exploration noise of continuous actions
    in units of their range [-1, 1], and `epsilon` the probability of random choices: each is a number, or (start, end, agent steps).
    `metrics` names the values that update() returns. `discrete`: the action is one choice. `encoder`: the agent sees pixels, and `policy`
    begins with `troupe.agents.encoder(env)`, of this kind ("stride4", "drq" or "elu", as in the C++ agents) and with `encoder_channels`
    channels. `name`: by default the name of the class.

    One object is made per run: `__init__(self, env, *, …)` gets an AgentEnv, and its keyword-only parameters are options of the
    experiment (`agent.options`). `update(batch)` gets tensors: observation, next_observation, action, reward, discount (over n steps, 0 after
    a termination), and weight if replay is prioritized. It may set `self.priorities` [batch].

    With `learner.replicas` and the strategy multi_worker, there are several objects, each of which gets its part of the batch on a separate
    thread. Before an optimizer's step(), its gradients are replaced by the mean over all replicas, so all replicas make the same steps. They
    share PyTorch's random number generator, so such a run is not reproducible."""

    def decorate(made: Any) -> Any:
        factory = Factory(made, name or made.__name__, batch_size, policy_layers, noise, epsilon, metrics, discrete, encoder, encoder_channels)
        factory.settings({})
        _native.add_agent(factory)
        made.troupe_name = factory.name
        return made

    return decorate
