#!/usr/bin/env python3
"""python_rival.py [steps] [native] [pixels] [rays] [--rounds N] [--seconds S] [--bench PROGRAM]: compares environments and pictures from Python with
EnvPool, Gymnasium and mujoco.Renderer, in Markdown tables.

    PYTHONPATH=build/release/python VENV/bin/python experiments/bench/peers/python_rival.py steps pixels rays
    PYTHONPATH=build/release/python VENV/bin/python experiments/bench/peers/python_rival.py native --bench build/release/troupe_bench

VENV has gymnasium, mujoco, dm_control and envpool; if EnvPool is missing, it is left out. Each figure is measured in a separate process; ours and
the rival's take turns, and a figure is the median of the rounds. `native`: the rival is the C++ pool, without Python. Nothing else may run meanwhile."""
import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import time

# (Troupe's name, EnvPool's name).
TASKS = [
    ("cheetah_run", "CheetahRun-v1"),
    ("walker_walk", "WalkerWalk-v1"),
    ("humanoid_run", "HumanoidRun-v1"),
    ("HalfCheetah-v5", "HalfCheetah-v5"),
    ("Ant-v5", "Ant-v5"),
]
# Tasks of dm_control, and two models of this file.
PICTURES = ["cheetah run", "walker walk", "humanoid run", "quadruped walk", "fish swim", "meshes", "skin"]


def rate(step, count, seconds):
    """Returns calls of `step` per second times `count`."""
    for _ in range(3):
        step()
    calls, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(5):
            step()
        calls += 5
    return calls * count / (time.perf_counter() - begin)


def played(envs, environments, receive, actions, batch, seconds):
    """Returns steps/s with `actions` [turns, batch, …]: all environments at once, or the first `batch` that `receive` returns."""
    turn = 0
    if batch == environments:
        envs.reset()
    else:
        envs.async_reset()

    def step():
        nonlocal turn
        turn = (turn + 1) % len(actions)
        if batch == environments:
            envs.step(actions[turn])
        else:
            envs.send(actions[turn], receive()[4]["env_id"])

    return rate(step, batch, seconds)


def troupe_steps(task, environments, batch, threads, seconds):
    import numpy as np
    import troupe

    envs = troupe.make_vec(task, environments, num_threads=threads, batch_size=batch, seed=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (64, batch, *envs.single_action_space.shape)).astype(np.float32)
    return played(envs, environments, envs.receive, actions, batch, seconds)


def envpool_steps(task, environments, batch, threads, seconds):
    import envpool
    import numpy as np

    envs = envpool.make(task, env_type="gymnasium", num_envs=environments, batch_size=batch, num_threads=threads, seed=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (64, batch, *envs.action_space.shape)).astype(envs.action_space.dtype)
    return played(envs, environments, envs.recv, actions, batch, seconds)


def gymnasium_steps(task, environments, seconds):
    import gymnasium
    import numpy as np

    envs = gymnasium.make_vec(task, num_envs=environments, vectorization_mode="async")
    envs.reset(seed=1)
    actions = np.random.default_rng(0).uniform(-1, 1, (64, environments, envs.single_action_space.shape[0])).astype(np.float32)
    turn = 0

    def step():
        nonlocal turn
        turn += 1
        envs.step(actions[turn % 64])

    value = rate(step, environments, seconds)
    envs.close()
    return value


def ball(rings=24, sides=48):
    """Returns the vertices of a bumpy ball, from which MuJoCo makes the hull."""
    import numpy as np

    up = np.linspace(0, np.pi, rings)[:, None]
    round_ = np.linspace(0, 2 * np.pi, sides, endpoint=False)[None]
    points = np.stack([np.sin(up) * np.cos(round_), np.sin(up) * np.sin(round_), np.cos(up) + 0 * round_], -1).reshape(-1, 3)
    return " ".join(f"{x:.4f}" for x in (0.4 * points * (1 + 0.1 * np.sin(5 * points[:, :1]))).ravel())


def sleeve(rings=30, sides=24):
    """Returns a skin around two bones: vertices, faces, weights."""
    import numpy as np

    height = np.linspace(-0.6, 0.6, rings)
    angle = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    vertices = np.array([(0.12 * np.cos(a), 0.12 * np.sin(a), h) for h in height for a in angle])
    faces = []
    for i in range(rings - 1):
        for k in range(sides):
            a, b, c, d = i * sides + k, i * sides + (k + 1) % sides, (i + 1) * sides + k, (i + 1) * sides + (k + 1) % sides
            faces += [a, b, d, a, d, c]
    weight = np.clip(0.5 + vertices[:, 2] * 2, 0, 1)
    return vertices, faces, weight


def own_model(kind):
    import numpy as np

    head = """<mujoco><visual><headlight ambient=".3 .3 .3"/></visual><asset>
      <texture name="sky" type="skybox" builtin="gradient" rgb1=".3 .5 .7" rgb2="0 0 0" width="256" height="256"/>
      <texture name="check" type="2d" builtin="checker" rgb1=".9 .8 .2" rgb2=".1 .2 .5" width="256" height="256"/>
      <texture name="noise" type="cube" builtin="gradient" mark="random" rgb1=".8 .4 .3" rgb2=".3 .4 .8" width="128" height="128"/>
      <material name="check" texture="check" texrepeat="6 6" reflectance=".2"/><material name="noise" texture="noise" specular=".8"/>"""
    world = """<worldbody><light pos="0 0 4" dir="0 0 -1"/><light pos="2 -2 3" dir="-.5 .5 -.7"/>
      <camera name="side" pos="0 -3 1.5" xyaxes="1 0 0 0 .5 1"/><geom type="plane" size="4 4 .1" material="check"/>"""
    if kind == "meshes":
        bodies = "".join(
            f'<body pos="{x} {y} .6"><freejoint/><geom type="mesh" mesh="ball" material="noise"/></body>' for x in (-0.9, 0, 0.9) for y in (0, 0.9)
        )
        return f'{head}<mesh name="ball" vertex="{ball()}"/></asset>{world}{bodies}</worldbody></mujoco>'
    vertices, faces, weight = sleeve()
    bones = "".join(
        f'<bone body="{body}" bindpos="0 0 {z}" bindquat="1 0 0 0" vertid="{" ".join(map(str, np.flatnonzero(w > 0)))}"'
        f' vertweight="{" ".join(f"{x:.3f}" for x in w[w > 0])}"/>'
        for body, z, w in (("lower", -0.3, 1 - weight), ("upper", 0.3, weight))
    )
    numbers = " ".join(f"{x:.4f}" for x in vertices.ravel())
    return f"""{head}</asset>{world}<body name="lower" pos="0 0 .9"><freejoint/><geom type="capsule" size=".05 .25" rgba="1 1 1 0"/>
      <body name="upper" pos="0 0 .6"><joint type="ball" pos="0 0 -.3"/><geom type="capsule" size=".05 .25" rgba="1 1 1 0"/></body></body></worldbody>
      <deformable><skin name="sleeve" material="noise" vertex="{numbers}" face="{" ".join(map(str, faces))}">{bones}</skin></deformable></mujoco>"""


def model_of(kind):
    import mujoco

    if kind in ("meshes", "skin"):
        return mujoco.MjModel.from_xml_string(own_model(kind))
    from dm_control import suite

    return suite.load(*kind.split()).physics.model.ptr


def pictures(what, kind, seconds):
    os.environ["MUJOCO_GL"] = "egl"
    import mujoco
    import numpy as np

    model = model_of(kind)
    rng = np.random.default_rng(0)
    states = [mujoco.MjData(model)]
    for _ in range(31):
        states.append(copy.copy(states[-1]))
        states[-1].ctrl[:] = rng.uniform(-1, 1, model.nu)
        mujoco.mj_step(model, states[-1], 10)
    for data in states:
        mujoco.mj_forward(model, data)
    if what == "troupe":
        from troupe.render import Renderer
    else:
        from mujoco import Renderer
    renderer = Renderer(model, 84, 84)
    turn = 0

    def step():
        nonlocal turn
        turn += 1
        renderer.update_scene(states[turn % 32], 0 if model.ncam else -1)
        renderer.render()

    return rate(step, 1, seconds)


def envpool_pixels(task, seconds):
    import envpool
    import numpy as np

    envs = envpool.make(task, env_type="gymnasium", num_envs=4, batch_size=4, num_threads=1, seed=1, from_pixels=True, frame_stack=3, render_camera_id=0)
    envs.reset()
    actions = np.zeros((4, *envs.action_space.shape), envs.action_space.dtype)
    return rate(lambda: envs.step(actions), 4, seconds)


def troupe_pixels(task, seconds):
    import numpy as np
    import troupe

    envs = troupe.make_vec(task, 4, pixels=(84, 84), frame_stack=3, seed=1)
    envs.reset()
    actions = np.zeros((4, *envs.single_action_space.shape), np.float32)
    return rate(lambda: envs.step(actions), 4, seconds)


RAYS = ["humanoid run", "quadruped walk", "meshes"]


def rays(what, kind, seconds):
    """Returns rays/s of a lidar with 64 by 1024 directions, from a point above the middle of the scene."""
    import mujoco
    import numpy as np
    from troupe.render import RayCaster, lidar

    model = model_of(kind)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    directions = lidar(np.linspace(-np.pi, np.pi, 1024, endpoint=False), np.radians(np.linspace(-45, 15, 64))).reshape(-1, 3)
    origin = data.xpos[1] + [0.7, 0.3, 0.8]
    count = len(directions)
    if what == "troupe":
        caster = RayCaster(model, 8, 8)
        return rate(lambda: caster.rays(data, origin, directions), count, seconds)
    flat, geoms, distances = directions.ravel(), np.zeros(count, np.int32), np.zeros(count)
    return rate(lambda: mujoco.mj_multiRay(model, data, origin, flat, None, 1, -1, geoms, distances, None, count, mujoco.mjMAXVAL), count, seconds)


CALLS = {f.__name__: f for f in (troupe_steps, envpool_steps, gymnasium_steps, pictures, rays, envpool_pixels, troupe_pixels)}


def measured(call, *arguments):
    """Measures in a separate process; returns None if it fails."""
    environment = dict(os.environ)
    if call == "envpool_pixels":  # otherwise it aborts in mjr_makeContext with Debian's Mesa
        environment["LD_PRELOAD"] = "libEGL.so.1:libGL.so.1"
    done = subprocess.run([sys.executable, __file__, "call", json.dumps([call, *arguments])], capture_output=True, text=True, env=environment)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        print(f"{call} {arguments}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None


def cpp_pool(program, task, environments, batch, threads, seconds):
    """Runs `troupe_bench pool` for one pool."""
    words = [program, "pool", "--task", task, "--pool", f"{environments}/{batch}/{threads}", "--json", "--seconds", str(seconds), "--repetitions", "1"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)["value"]


def table(title, columns, rows):
    print(f"\n{title}\n\n| | {' | '.join(columns)} | ratio |\n|---|{'---|' * (len(columns) + 1)}")
    for name, values in rows:
        shown = [f"{value:,.0f}" if value is not None else "–" for value in values]
        ratio = f"{values[0] / values[1]:.2f}" if all(values[:2]) else "–"
        print(f"| {name} | {' | '.join(shown)} | {ratio} |", flush=True)


def interleaved(calls, rounds):
    """Returns the median of each call over the rounds, in which the calls take turns."""
    values = [[] for _ in calls]
    for _ in range(rounds):
        for kept, call in zip(values, calls):
            value = call()
            if value is not None:
                kept.append(value)
    return [statistics.median(kept) if kept else None for kept in values]


POOLS = ((64, 64, 1), (64, 64, 2), (256, 128, 2))


def native(options):
    s, rounds = options.seconds, options.rounds
    rows = []
    for task, _ in TASKS:
        for environments, batch, threads in POOLS:
            calls = [
                lambda: measured("troupe_steps", task, environments, batch, threads, s),
                lambda: cpp_pool(options.bench, task, environments, batch, threads, s),
            ]
            rows.append((f"{task}, {environments} environments, batch {batch}, {threads} thread{'s' * (threads > 1)}", interleaved(calls, rounds)))
    table("Steps/s", ["Python", "C++"], rows)


def steps(options):
    s, rounds = options.seconds, options.rounds
    rows = []
    for ours, theirs in TASKS:
        for environments, batch, threads in POOLS:
            calls = [
                lambda: measured("troupe_steps", ours, environments, batch, threads, s),
                lambda: measured("envpool_steps", theirs, environments, batch, threads, s),
            ]
            rows.append((f"{ours}, {environments} environments, batch {batch}, {threads} thread{'s' * (threads > 1)}", interleaved(calls, rounds)))
    table("Steps/s from Python", ["troupe", "EnvPool"], rows)
    rows = []
    for task in ("HalfCheetah-v5", "Ant-v5"):
        calls = [lambda: measured("troupe_steps", task, 16, 16, 2, s), lambda: measured("gymnasium_steps", task, 16, s)]
        rows.append((f"{task}, 16 environments", interleaved(calls, rounds)))
    table("Steps/s from Python", ["troupe", "AsyncVectorEnv"], rows)


def pixels(options):
    s, rounds = options.seconds, options.rounds
    rows = []
    for kind in PICTURES:
        calls = [lambda: measured("pictures", "troupe", kind, s), lambda: measured("pictures", "mujoco", kind, s)]
        rows.append((f"{kind}, 84x84", interleaved(calls, rounds)))
    table("Pictures/s from Python, one thread, all effects", ["troupe", "mujoco.Renderer"], rows)
    rows = []
    for ours, theirs in TASKS[:3]:
        calls = [lambda: measured("troupe_pixels", ours, s), lambda: measured("envpool_pixels", theirs, s)]
        rows.append((f"{ours}, 84x84, 3 frames, 4 environments, 1 thread", interleaved(calls, rounds)))
    table("Steps/s with pixels from Python", ["troupe", "EnvPool"], rows)


def lidars(options):
    s, rounds = options.seconds, options.rounds
    rows = [(f"{kind}, 64x1024 rays", interleaved([lambda who=who: measured("rays", who, kind, s) for who in ("troupe", "mujoco")], rounds)) for kind in RAYS]
    table("Rays/s from Python, one thread", ["troupe", "mj_multiRay"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=["steps", "native", "pixels", "rays"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--bench", help="the built troupe_bench")
    options = parser.parse_args()
    if "steps" in options.what:
        steps(options)
    if "native" in options.what:
        if not options.bench:
            parser.error("native needs --bench, the built troupe_bench")
        native(options)
    if "pixels" in options.what:
        pixels(options)
    if "rays" in options.what:
        lidars(options)


if sys.argv[1:2] == ["call"]:
    name, *given = json.loads(sys.argv[2])
    print(json.dumps(CALLS[name](*given)))
else:
    main()
