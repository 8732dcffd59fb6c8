"""Records short trajectories, random states and frames of every task of the DeepMind Control Suite from the real dm_control.

    MUJOCO_GL=egl python make_control_suite.py --out control_suite

Needs dm_control 1.0.50 and mujoco 3.17.0. README.md beside this file describes what is written. `troupe check golden` reads the folder.
"""
import argparse
import importlib.metadata
import json
import pathlib

import mujoco
import numpy as np
from dm_control import suite

STATE = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart", "mocap_pos", "mocap_quat", "eq_active")
JOINT = mujoco.mjtJoint
ENORMOUS = 10_000  # numbers in an array: a height field, which only one task changes


def public_arrays(owner, prefix=""):
    """Copies of the numeric attributes of a MuJoCo structure, by name."""
    named = ((name, getattr(owner, name, None)) for name in dir(owner) if not name.startswith("_"))
    return {prefix + name: np.array(value) for name, value in named if isinstance(value, (np.ndarray, int, float))}


def model_arrays(model):
    return {**public_arrays(model), **public_arrays(model.opt, "opt.")}


def differing(before, after):
    return sorted(name for name, value in after.items() if not np.array_equal(before[name], value, equal_nan=value.dtype.kind == "f"))


def flatten(observation):
    return np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in observation.values()])


def random_positions(model, start, random):
    """Joints anywhere in their ranges, free bodies near their start, in any orientation."""
    qpos = start.copy()
    for joint in range(model.njnt):
        at, kind = model.jnt_qposadr[joint], model.jnt_type[joint]
        if kind == JOINT.mjJNT_FREE:
            qpos[at:at + 3] += random.normal(scale=0.3, size=3)
            at += 3
        if kind in (JOINT.mjJNT_FREE, JOINT.mjJNT_BALL):
            quaternion = random.normal(size=4)
            qpos[at:at + 4] = quaternion / np.linalg.norm(quaternion)
        elif model.jnt_limited[joint]:
            qpos[at] = random.uniform(*model.jnt_range[joint])
        else:
            qpos[at] = random.uniform(-np.pi, np.pi) if kind == JOINT.mjJNT_HINGE else random.uniform(-1, 1)
    return qpos


def record_probes(environment, random, count):
    """Observations and rewards of random states: set positions, velocities and controls, then mj_forward."""
    physics = environment.physics
    model, data = physics.model.ptr, physics.data.ptr
    start = data.qpos.copy()
    rows = {name: [] for name in ("qpos", "qvel", "ctrl", "obs", "reward")}
    for _ in range(count):
        data.qpos[:] = random_positions(model, start, random)
        data.qvel[:] = random.normal(size=model.nv) * random.choice([0.1, 2.0, 20.0])
        data.ctrl[:] = random.uniform(-1, 1, size=model.nu)
        data.qacc_warmstart[:] = 0
        row = dict(qpos=data.qpos.copy(), qvel=data.qvel.copy(), ctrl=data.ctrl.copy())
        physics.forward()
        row.update(obs=flatten(environment.task.get_observation(physics)), reward=environment.task.get_reward(physics))
        for name, value in row.items():
            rows[name].append(value)
    return {"probe_" + name: np.array(values, dtype=np.float64) for name, values in rows.items()}


def record(domain, task, options):
    """One task's arrays, frames and entry of the index."""
    environment = suite.load(domain, task, task_kwargs={"random": options.seed})
    physics = environment.physics
    model, data = physics.model.ptr, physics.data.ptr
    compiled = model_arrays(model)
    step = environment.reset()
    begun = model_arrays(model)
    randomised = differing(compiled, begun)
    spec, observation = environment.action_spec(), step.observation
    arrays = {"obs0": flatten(observation), "init/time": np.array(data.time)}
    arrays.update({"model/" + name: begun[name] for name in randomised})
    arrays.update({"init/" + name: np.array(getattr(data, name)) for name in STATE if np.size(getattr(data, name))})

    camera = 2 if domain == "quadruped" else 0
    frames = [physics.render(options.size, options.size, camera_id=camera)]
    random = np.random.RandomState(options.action_seed)
    rows = {name: [] for name in ("actions", "obs", "reward", "discount", "step_type")}
    for _ in range(options.steps):
        action = random.uniform(np.maximum(spec.minimum, -1), np.minimum(spec.maximum, 1), size=spec.shape)
        step = environment.step(action)
        for name, value in dict(actions=action, obs=flatten(step.observation), reward=step.reward, discount=step.discount,
                                step_type=int(step.step_type)).items():
            rows[name].append(value)
    arrays.update({name: np.array(values) for name, values in rows.items()})
    frames.append(physics.render(options.size, options.size, camera_id=camera))

    # Probes are taken in the model of the next episode, but the height field stays that of the first, because it is most of a file.
    environment.reset()
    if differing(begun, model_arrays(model)):
        for name, value in begun.items():
            if value.size > ENORMOUS and value.shape:
                getattr(model, name)[:] = value
        probed = model_arrays(model)
        for name in differing(compiled, probed):
            if probed[name].size <= ENORMOUS:
                arrays["probe_model/" + name] = probed[name]
            else:
                arrays["probe_model/" + name] = begun[name]
    # Sparse rewards are rarely anything but zero, so small models get many states, large ones few.
    arrays.update(record_probes(environment, random, options.probes * (8 if model.nq <= 12 else 1)))

    limit = environment._step_limit
    entry = dict(
        seed=options.seed, control_timestep=environment.control_timestep(),
        episode_steps=int(np.ceil(limit)) if np.isfinite(limit) else None,
        action_spec=dict(minimum=np.broadcast_to(spec.minimum, spec.shape).tolist(),
                         maximum=np.broadcast_to(spec.maximum, spec.shape).tolist()),
        observation=[dict(key=key, shape=list(np.shape(value))) for key, value in observation.items()],
        model_fields_changed_by_reset=randomised)
    pictures = dict(frames=np.array(frames), steps=np.array([0, options.steps]), camera=np.array(camera))
    return arrays, pictures, entry


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=42, help="of the tasks")
    parser.add_argument("--action-seed", type=int, default=7)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--probes", type=int, default=16, help="of models with many joints; small models have eight times as many")
    parser.add_argument("--size", type=int, default=84, help="pixels of a frame's side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = {}
    for domain, task in suite.ALL_TASKS:
        name = f"{domain}_{task}"
        arrays, pictures, tasks[name] = record(domain, task, options)
        np.savez_compressed(options.out / f"{name}.npz", **arrays)
        np.savez_compressed(options.out / f"frames_{name}.npz", **pictures)
        print(name, flush=True)
    versions = dict(dm_control=importlib.metadata.version("dm_control"), mujoco=mujoco.__version__)
    entries = ",\n".join(f'  "{name}": {json.dumps(entry)}' for name, entry in sorted(tasks.items()))
    (options.out / "index.json").write_text(f'{{"versions": {json.dumps(versions)}, "tasks": {{\n{entries}\n}}}}\n')


if __name__ == "__main__":
    main()
