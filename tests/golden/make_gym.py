"""Records golden trajectories of Gym's MuJoCo tasks from the real Gymnasium.

    python make_gym.py --out golden --seed 42 --steps 200 --probes 64 --resets 500

Needs gymnasium 1.4.0 and mujoco 3.17.0. Each of the eleven tasks is recorded with its default options and once or more with others, so that every
option is used at least once. Written are:

index.json: the versions, and for each recording under "tasks" its task and its options as text.
<recording>.npz, all float64; an episode goes on until it ends, then the next one begins:
  action [T, nu], obs [T, n], reward [T], terminated [T], truncated [T], qpos [T, nq], qvel [T, nv]   one row a step
  part/<name> [T]                                                     the parts of the reward, from `info`
  reset_step [E], reset_qpos [E, nq], reset_qvel [E, nv], reset_obs [E, n]   before which step an episode began, and where
  probe_qpos, probe_qvel, probe_action, probe_obs, probe_reward, probe_terminated [P, ...]
      one step from a random state: reset, set qpos and qvel, mj_forward, step
  resets_qpos [R, nq], resets_qvel [R, nv]                            where R episodes begin; left out when R is 0
"""
import argparse
import math

import gymnasium
import mujoco
import numpy as np

from recordings import Log, as_texts, write_index, write_recording

INFINITY = math.inf
COMMON = dict(frame_skip=3, max_episode_steps=7)
HUMANOID_HIDDEN = dict(include_cinert_in_observation=False, include_cvel_in_observation=False, include_qfrc_actuator_in_observation=False,
                       include_cfrc_ext_in_observation=False, exclude_current_positions_from_observation=False)
RUNNER = dict(COMMON, forward_reward_weight=0.7, ctrl_cost_weight=0.3, reset_noise_scale=0.02, exclude_current_positions_from_observation=False)
BIPED = dict(RUNNER, healthy_reward=0.4, healthy_z_range=(0.9, 1.4), healthy_angle_range=(-0.05, 0.08))
VARIANTS = {
    "Ant-v5": {
        "": {},
        "weights": dict(COMMON, forward_reward_weight=0.7, ctrl_cost_weight=0.2, contact_cost_weight=0.01, healthy_reward=0.3, main_body=5,
                        contact_force_range=(-3.0, 20.0), healthy_z_range=(0.35, 0.8), reset_noise_scale=0.2),
        "hidden": dict(include_cfrc_ext_in_observation=False, exclude_current_positions_from_observation=False, main_body="torso",
                       terminate_when_unhealthy=False, healthy_z_range=(0.5, 0.7)),
    },
    "HalfCheetah-v5": {"": {}, "weights": RUNNER},
    "Swimmer-v5": {"": {}, "weights": RUNNER},
    "Hopper-v5": {
        "": {},
        "weights": BIPED,
        "states": dict(healthy_state_range=(-2.0, 2.0)),
        "unending": dict(terminate_when_unhealthy=False, max_episode_steps=-1),
    },
    "Walker2d-v5": {"": {}, "weights": BIPED, "unending": dict(terminate_when_unhealthy=False, xml_file="walker2d.xml")},
    "Humanoid-v5": {
        "": {},
        "weights": dict(COMMON, forward_reward_weight=0.7, ctrl_cost_weight=0.2, contact_cost_weight=1e-4, contact_cost_range=(0.5, 3.0),
                        healthy_reward=1.5, healthy_z_range=(1.3, 1.5), reset_noise_scale=0.05),
        "hidden": dict(HUMANOID_HIDDEN, terminate_when_unhealthy=False),
    },
    "HumanoidStandup-v5": {
        "": {},
        "weights": dict(COMMON, uph_cost_weight=3.0, ctrl_cost_weight=0.2, impact_cost_weight=1e-4, impact_cost_range=(-INFINITY, 0.7),
                        reset_noise_scale=0.05),
        "hidden": HUMANOID_HIDDEN,
    },
    "InvertedPendulum-v5": {"": {}, "weights": dict(COMMON, reset_noise_scale=0.1)},
    "InvertedDoublePendulum-v5": {"": {}, "weights": dict(COMMON, healthy_reward=3.0, reset_noise_scale=0.2)},
    "Pusher-v5": {"": {}, "weights": dict(COMMON, reward_near_weight=0.2, reward_dist_weight=0.6, reward_control_weight=0.4)},
    "Reacher-v5": {"": {}, "weights": dict(COMMON, reward_dist_weight=0.6, reward_control_weight=0.4)},
}
PARTS = ("reward_", "distance_penalty", "velocity_penalty")


class FloatLog(Log):
    def put(self, **values):
        super().put(**{key: np.array(value, dtype=np.float64) for key, value in values.items()})


def make(task, options):
    """The environment as gymnasium.make() registers it; actions are passed on as float64."""
    return gymnasium.make(task, disable_env_checker=True, **options)


def random_actions(env, random, count):
    low, high = env.unwrapped.model.actuator_ctrlrange.T
    return random.uniform(low, high, size=(count, env.unwrapped.model.nu))


def random_state(env, random):
    """Positions around those where episodes begin, velocities from slow to fast."""
    model = env.unwrapped.model
    qpos = env.unwrapped.init_qpos + random.normal(size=model.nq) * random.choice([0.02, 0.1, 0.5])
    if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        qpos[3:7] /= np.linalg.norm(qpos[3:7])
    return qpos, random.normal(size=model.nv) * random.choice([0.1, 1.0, 8.0])


def record_episodes(task, options, args, random):
    env = make(task, options)
    data = env.unwrapped.data
    log, done, seed = FloatLog(), True, args.seed
    for i, action in enumerate(random_actions(env, random, args.steps)):
        if done:
            observation, _ = env.reset(seed=seed)
            seed += 1
            log.put(reset_step=i, reset_qpos=data.qpos, reset_qvel=data.qvel, reset_obs=observation)
        observation, reward, terminated, truncated, info = env.step(action)
        log.put(action=action, obs=observation, reward=reward, terminated=terminated, truncated=truncated, qpos=data.qpos, qvel=data.qvel)
        log.put(**{"part/" + key: value for key, value in info.items() if key.startswith(PARTS)})
        done = terminated or truncated
    return log


def record_probes(task, options, args, random):
    env = make(task, options).unwrapped
    model, data, log = env.model, env.data, FloatLog()
    while len(log.get("probe_qpos", [])) < args.probes:
        qpos, qvel = random_state(env, random)
        action = random_actions(env, random, 1)[0]
        mujoco.mj_resetData(model, data)
        env.set_state(qpos, qvel)
        start = dict(probe_qpos=qpos, probe_qvel=qvel, probe_action=action)
        observation, reward, terminated, _, _ = env.step(action)
        if any(data.warning[i].number for i in range(len(data.warning))):
            continue  # a simulation that blew up says nothing
        log.put(**start, probe_obs=observation, probe_reward=reward, probe_terminated=terminated)
    return log


def record_resets(task, options, args):
    if args.resets == 0:
        return {}
    env = make(task, options)
    log = FloatLog()
    env.reset(seed=args.seed)
    for _ in range(args.resets):
        env.reset()
        log.put(resets_qpos=env.unwrapped.data.qpos, resets_qvel=env.unwrapped.data.qvel)
    return log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--probes", type=int, default=64)
    parser.add_argument("--resets", type=int, default=500)
    parser.add_argument("--only", nargs="*", help="names of recordings, all if left out")
    args = parser.parse_args()
    mujoco.set_mju_user_warning(lambda text: None)  # instead of a log file; probes that blow up are drawn again
    tasks = {}
    for task, variants in VARIANTS.items():
        for variant, options in variants.items():
            name = task + ("." + variant if variant else "")
            if args.only and name not in args.only:
                continue
            random = np.random.RandomState(args.seed)
            log = record_episodes(task, options, args, random)
            log.update(record_probes(task, {k: v for k, v in options.items() if k != "max_episode_steps"}, args, random))
            log.update(record_resets(task, options, args))
            write_recording(args.out, name, log)
            tasks[name] = dict(task=task, options=as_texts(options), seed=args.seed, steps=args.steps)
    write_index(args.out, ["gymnasium", "mujoco"], tasks, added=bool(args.only))


if __name__ == "__main__":
    main()
