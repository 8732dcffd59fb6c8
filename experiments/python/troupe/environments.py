"""Environments that step in C++ in this process, with the interfaces of Gymnasium's Env and VectorEnv."""

from __future__ import annotations

import enum
import secrets
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space

from troupe import _native
from troupe.keys import assignments
from troupe.pictures import KINDS, Picture, check_kind, png, shown
from troupe.spaces import Actions, Spec, observation_space

try:
    from gymnasium.vector import AutoresetMode
except ImportError:  # Gymnasium before 1.1

    class AutoresetMode(enum.Enum):  # type: ignore[no-redef]
        NEXT_STEP = "NextStep"
        SAME_STEP = "SameStep"
        DISABLED = "Disabled"


DEADLINE = 60.0  # seconds
_RENDER_MODES = {f"{kind}_array": kind for kind in KINDS}
_SEEDS = 1 << 63
_FAILED = 1  # RowStatus's value; greater values: out of service

# The parts of a result of _native.Pool, in order.
(
    _OBSERVATIONS,
    _REWARDS,
    _TERMINATED,
    _TRUNCATED,
    _DISCOUNTS,
    _STEP_TYPES,
    _STATUSES,
    _ENVIRONMENTS,
    _EPISODE_STEPS,
    _EPISODE_RETURNS,
) = range(10)


def make(task: str, **options: Any) -> "Env":
    """Returns Env(task, …): one environment."""
    return Env(task, **options)


def make_vec(task: str, num_envs: int = 1, **options: Any) -> "VectorEnv":
    """Returns VectorEnv(task, num_envs, …): many environments on several threads."""
    return VectorEnv(task, num_envs, **options)


def register() -> None:
    """Registers every task for `gymnasium.make("troupe/cheetah_run")` and `gymnasium.make_vec` ("troupe/MinAtar-Asterix-v0" is
    MinAtar/Asterix-v0). Importing both `troupe` and `gymnasium`, in any order, calls it."""
    for task in _native.environment_names():
        name = f"troupe/{task.replace('/', '-')}"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point="troupe.environments:make",
                vector_entry_point="troupe.environments:make_vec",
                kwargs={"task": task},
            )


class _Pool:
    """A native pool and its spec, shared by Env and VectorEnv."""

    def __init__(self, task: str, keys: Dict[str, Any], environments: int, threads: int, seed: Optional[int], spares: Optional[bool], deadline: float, bare: bool = False, keeps_rows: bool = False):
        self.native = _native.Pool(
            assignments(task, keys),
            environments=environments,
            threads=threads,
            seed=secrets.randbits(63) if seed is None else seed,
            spares=spares,
            bare=bare,
            keeps_rows=keeps_rows,
        )
        self.all = np.arange(environments, dtype=np.int32)
        self.deadline = deadline
        self.spec = Spec.of(self.native)
        self.actions = Actions(self.spec)
        self.space = observation_space(self.spec)
        names = [array.name for array in self.spec.observations]
        self.names: Optional[Sequence[str]] = None if len(names) == 1 else names

    def observations(self, arrays: Tuple[np.ndarray, ...]) -> Any:
        return arrays[0] if self.names is None else dict(zip(self.names, arrays))

    def metadata(self, render_mode: Optional[str]) -> Dict[str, Any]:
        """Gymnasium's metadata. Raises ValueError if the task does not have `render_mode`."""
        modes = list(_RENDER_MODES) if self.spec.renders else []
        if render_mode is not None and render_mode not in modes:
            rule = f"None or one of {', '.join(map(repr, modes))}" if modes else f"None, because {self.spec.name} is not a MuJoCo task"
            raise ValueError(f"render_mode is {render_mode!r}; it must be {rule}")
        period = self.spec.control_timestep_seconds * self.spec.action_repeat
        return {"render_modes": modes, "render_fps": round(1 / period) if period > 0 else 30}

    def pictures(self, environments: int, kind: str, size: Tuple[int, int], camera: Union[int, str]) -> Picture:
        """Pictures of the first `environments`: [environments, height, width, …]."""
        check_kind(kind)
        height, width = size
        return shown(self.native.pictures(environments, KINDS[kind][0], height, width, str(camera)))

    def png(self, environments: int, mode: Optional[str], size: Tuple[int, int], camera: Union[int, str]) -> Optional[bytes]:
        """The picture that a notebook displays for the first `environments`; colours if `mode` is None. Returns None if there is no picture."""
        try:
            return png(self.pictures(environments, _RENDER_MODES.get(mode, "rgb"), size, camera))
        except (ValueError, RuntimeError):  # not a MuJoCo task, or it is stepping on another thread
            return None


class Env(gymnasium.Env):
    """One of Troupe's environments.

    `options` are the keys of an experiment's block `environment` (`troupe list keys`): pixels=(84, 84), frame_stack=3, action_repeat=2,
    time_limit, observations=["state", "pixels"], normalization="running", randomization={"colours": 0.2}, options={"length": 2} for a Gym task
    or your own, plugin="libmine.so" … An unknown key, or a value that breaks its rule, raises ValueError.

    An observation is the array if there is only one, otherwise a dictionary by name; pictures are uint8 [frames * channels, height, width].
    Arrays belong to the caller: no later call changes them. The action space is a Box for continuous numbers, which are clipped; Discrete or
    MultiDiscrete for choices; and a Tuple of both if the task has both.

    An episode that ends by its time limit is truncated; one that ends with discount 0 is terminated. `info["discount"]` has the discount.
    `reset(seed=n)` begins the episode of seed n; later episodes without a seed follow from it. `seed` is the seed of the first episode; None:
    a random one. An environment that fails raises RuntimeError and may be reset; one that takes longer than `deadline` seconds raises
    TimeoutError.

    `render_mode` "rgb_array", "depth_array" (metres) or "segmentation_array" (object id and type, int32 [height, width, 2]) renders MuJoCo tasks
    from `render_camera`, with `render_size` (height, width) pixels.
    """

    def __init__(
        self,
        task: str,
        *,
        seed: Optional[int] = None,
        render_mode: Optional[str] = None,
        render_size: Tuple[int, int] = (240, 320),
        render_camera: Union[int, str] = 0,
        deadline: float = DEADLINE,
        **options: Any,
    ):
        self._pool = _Pool(task, options, 1, 1, seed, False, deadline)
        self.metadata = self._pool.metadata(render_mode)
        self.render_mode = render_mode
        self._render = (render_size, render_camera)
        self.task = self._pool.spec.name
        self.task_spec = self._pool.spec
        self.observation_space = self._pool.space
        self.action_space = self._pool.actions.space

    def _first(self, result: Tuple) -> Any:
        if result[_STATUSES][0] >= _FAILED:
            raise RuntimeError(self._pool.native.error(0))
        return self._pool.observations(tuple(array[0] for array in result[_OBSERVATIONS]))

    def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._pool.native.seed(self._pool.all, np.array([seed], np.uint64))
        result = self._pool.native.reset(self._pool.all, self._pool.deadline)
        return self._first(result), {"discount": 1.0}

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        result = self._pool.native.step(self._pool.actions.vectors(action), self._pool.deadline)
        observation = self._first(result)
        info = {"discount": float(result[_DISCOUNTS][0])}
        return observation, float(result[_REWARDS][0]), bool(result[_TERMINATED][0]), bool(result[_TRUNCATED][0]), info

    def render(self) -> Optional[np.ndarray]:
        if self.render_mode is None:
            return None
        return self._pool.pictures(1, _RENDER_MODES[self.render_mode], *self._render)[0]

    def _repr_png_(self) -> Optional[bytes]:
        """The current state, for notebooks."""
        return self._pool.png(1, self.render_mode, *self._render)

    def save_state(self) -> bytes:
        """Returns the complete state between two steps. An environment with the same options continues from it bit for bit."""
        return self._pool.native.save_state()

    def load_state(self, state: bytes) -> None:
        self._pool.native.load_state(state)


def _masked(info: Dict[str, Any], rows: int) -> Dict[str, Any]:
    """Adds Gymnasium's masks, which say that every row has a value."""
    return {**info, **{f"_{key}": np.ones(rows, bool) for key in info}}


class VectorEnv(GymnasiumVectorEnv):
    """`num_envs` environments of Troupe, stepped together on `num_threads` threads, one of which is the caller's. `options` are those of Env,
    and spaces are Env's, batched. Rewards are float64.

    Results are NumPy arrays over the memory that the environments wrote. Each step has its own block, which no later step changes and which
    is reused when its last array is gone. `torch.from_dlpack(array)` shares the memory.

    `autoreset_mode` (a member or its name): with NEXT_STEP, the step after the end of an episode resets; with SAME_STEP, the reset follows
    immediately, and the last observations are in `info["final_obs"]`; with DISABLED, the caller resets with `options={"reset_mask": mask}`,
    which seeds only these environments and returns the other rows as they were. An environment that fails is truncated, with the reason in
    `info["failure"]`. `reset(seed=n)` begins episode n + i in environment i; without a seed, each environment continues its sequence of
    episodes. `spares` keeps a second environment for each, in which the next episode begins ahead of time; None: if there is more than one
    thread and episodes depend only on their seeds, which they do not with running statistics.

    `send()` and `receive()` step without waiting for the slowest environments: receive() returns the first `batch_size` results, in any order.
    """

    closed, viewer, is_vector_env = False, None, True  # Gymnasium 0.29 sets them in its constructor

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        num_threads: int = 1,
        batch_size: Optional[int] = None,
        seed: Optional[int] = None,
        autoreset_mode: Union[str, AutoresetMode] = AutoresetMode.NEXT_STEP,
        spares: Optional[bool] = None,
        render_mode: Optional[str] = None,
        render_size: Tuple[int, int] = (240, 320),
        render_camera: Union[int, str] = 0,
        deadline: float = DEADLINE,
        **options: Any,
    ):
        modes = {name: mode for mode in AutoresetMode for name in (mode, mode.name, mode.value)}
        if autoreset_mode not in modes:
            raise ValueError(f"autoreset_mode is {autoreset_mode!r}; it must be one of {', '.join(mode.name for mode in AutoresetMode)}")
        self._mode = modes[autoreset_mode]
        self._pool = _Pool(task, options, num_envs, num_threads, seed, spares, deadline, keeps_rows=self._mode is AutoresetMode.DISABLED)
        self.metadata = {**self._pool.metadata(render_mode), "autoreset_mode": self._mode}
        self.render_mode = render_mode
        self._render = (render_size, render_camera)
        self.num_envs = num_envs
        self.batch_size = num_envs if batch_size is None else batch_size
        if not 1 <= self.batch_size <= num_envs:
            raise ValueError(f"batch_size is {batch_size}; it must be from 1 to num_envs, {num_envs}")
        self.task = self._pool.spec.name
        self.task_spec = self._pool.spec
        self.single_observation_space = self._pool.space
        self.single_action_space = self._pool.actions.space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = False
        self._ended = np.zeros(num_envs, bool)

    def _seed(self, seed: Union[int, Sequence[Optional[int]], None], chosen: np.ndarray) -> None:
        if seed is None:
            return
        seeds = [int(seed) + i for i in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments; give one for each, or one number")
        given = [i for i in chosen.tolist() if seeds[i] is not None]
        self._pool.native.seed(np.array(given, np.int32), np.array([seeds[i] for i in given], np.uint64))

    def reset(
        self, *, seed: Union[int, Sequence[Optional[int]], None] = None, options: Optional[Dict[str, Any]] = None
    ) -> Tuple[Any, Dict[str, Any]]:
        if isinstance(seed, (int, np.integer)):  # Gymnasium's own generator, which the environments do not use
            self._np_random, self._np_random_seed = np_random(int(seed))
        chosen = self._pool.all
        if options and options.get("reset_mask") is not None:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
                raise ValueError(f"reset_mask must be bool [{self.num_envs}] with at least one True")
            chosen = np.flatnonzero(mask).astype(np.int32)
        self._seed(seed, chosen)
        result = self._pool.native.reset(chosen, self._pool.deadline)
        self._check_begun(result, chosen)
        self._started = True
        self._ended[chosen] = False
        return self._pool.observations(result[_OBSERVATIONS]), _masked({"discount": result[_DISCOUNTS]}, self.num_envs)

    def _check_begun(self, result: Tuple, chosen: np.ndarray) -> None:
        failed = np.flatnonzero(result[_STATUSES][chosen])
        if len(failed):
            raise RuntimeError(self._pool.native.error(int(chosen[failed[0]])))

    def _info(self, result: Tuple) -> Dict[str, Any]:
        info = _masked({"discount": result[_DISCOUNTS]}, len(result[_STATUSES]))
        failed = np.flatnonzero(result[_STATUSES])
        if len(failed):
            failures = np.full(len(result[_STATUSES]), "", dtype=object)
            for row in failed:
                failures[row] = self._pool.native.error(int(result[_ENVIRONMENTS][row]))
            info["failure"], info["_failure"] = failures, result[_STATUSES] != 0
        return info

    def step(self, actions: Any) -> Tuple[Any, np.ndarray, np.ndarray, np.ndarray, Dict[str, Any]]:
        if not self._started:
            raise gymnasium.error.ResetNeeded("call reset() before the first step()")
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            rows = ", ".join(map(str, np.flatnonzero(self._ended)[:8]))
            raise gymnasium.error.ResetNeeded(f"the episodes of environments {rows} have ended; call reset(options={{'reset_mask': mask}}) first")
        result = self._pool.native.step(self._pool.actions.vectors(actions, self.num_envs), self._pool.deadline)
        info = self._info(result)
        observations = self._pool.observations(result[_OBSERVATIONS])
        terminated, truncated = result[_TERMINATED], result[_TRUNCATED]
        if self._mode is not AutoresetMode.NEXT_STEP:
            self._ended = terminated | truncated
            if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
                observations = self._begin_again(observations, info)
        return observations, result[_REWARDS], terminated, truncated, info

    def _begin_again(self, last: Any, info: Dict[str, Any]) -> Any:
        """Begins new episodes where episodes have ended; puts the last observations into `info`, like Gymnasium."""
        ended = self._ended
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final[i] = last[i] if self._pool.names is None else {name: array[i] for name, array in last.items()}
        info["final_obs"], info["_final_obs"] = final, ended.copy()
        info["final_info"] = {"discount": info["discount"], "_discount": ended.copy()}
        info["_final_info"] = ended.copy()
        chosen = np.flatnonzero(ended).astype(np.int32)
        result = self._pool.native.reset(chosen, self._pool.deadline)
        self._check_begun(result, chosen)
        self._ended = np.zeros(self.num_envs, bool)
        return self._pool.observations(result[_OBSERVATIONS])

    def async_reset(self) -> None:
        """Begins new episodes in all environments; receive() returns their first observations."""
        self._pool.native.send_reset(self._pool.all)
        self._started = True

    def send(self, actions: Any, env_ids: Optional[np.ndarray] = None) -> None:
        """Steps the environments `env_ids` (None: all) with one action each. The action after the end of an episode begins the next."""
        chosen = self._pool.all if env_ids is None else np.ascontiguousarray(env_ids, np.int32)
        self._pool.native.send(chosen, self._pool.actions.vectors(actions, len(chosen)))

    def receive(self) -> Tuple[Any, np.ndarray, np.ndarray, np.ndarray, Dict[str, Any]]:
        """Returns the next `batch_size` results in the form of step(); `info["env_id"]` says which environments they belong to."""
        result = self._pool.native.receive(self.batch_size, self._pool.deadline)
        info = {**self._info(result), **_masked({"env_id": result[_ENVIRONMENTS]}, self.batch_size)}
        return self._pool.observations(result[_OBSERVATIONS]), result[_REWARDS], result[_TERMINATED], result[_TRUNCATED], info

    recv = receive  # EnvPool's name

    def render(self) -> Optional[Tuple[np.ndarray, ...]]:
        if self.render_mode is None:
            return None
        return tuple(self.pictures(_RENDER_MODES[self.render_mode]))

    def pictures(self, kind: str = "rgb", *, size: Optional[Tuple[int, int]] = None, camera: Union[int, str, None] = None) -> Picture:
        """Draws the present states of all environments on `num_threads` threads; `render_mode` need not be set. Returns "rgb" uint8
        [num_envs, height, width, 3], "depth" float32 [num_envs, height, width] in metres from the camera's plane, or "segmentation" int32
        [num_envs, height, width, 2], object id and type of what is visible (-1, -1: nothing). `size` (height, width) and `camera` are those of
        `render_size` and `render_camera` if None."""
        default_size, default_camera = self._render
        return self._pool.pictures(self.num_envs, kind, size or default_size, default_camera if camera is None else camera)

    def _repr_png_(self) -> Optional[bytes]:
        """The current states of the first sixteen environments, for notebooks."""
        return self._pool.png(min(self.num_envs, 16), self.render_mode, *self._render)

    def save_state(self) -> bytes:
        """Returns the complete state of all environments. No request may be in flight."""
        return self._ended.tobytes() + self._pool.native.save_state()

    def load_state(self, state: bytes) -> None:
        self._pool.native.load_state(state[self.num_envs :])
        self._ended = np.frombuffer(state, np.uint8, self.num_envs) != 0
        self._started = True


register()
