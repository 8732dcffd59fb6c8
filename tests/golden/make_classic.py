"""Records golden data of Gymnasium's classic control and toy text tasks.

    python make_classic.py --out classic --seed 42 --steps 30 --probes 30 --resets 2000

Needs gymnasium 1.4.0. Each task is recorded with its default options and with others, so that every option is used at least once.
Written are:

index.json: the versions, and for each recording under "tasks" its options as text.
<recording>.npz of a task with a continuous state:
  state [T, n], action [T], next_state [T, n], obs [T, m] float32, reward, terminated, truncated, first [T]
      one row a step of episodes with random actions; first: the step begins an episode
  probe_state [P, n], probe_action [P], probe_next_state, probe_obs, probe_reward, probe_terminated
      one step from a random state
  start_quantiles [21, n]                       of the states in which episodes begin: minimum, 5 %, ..., maximum
<recording>.npz of a task whose state is a number:
  probability, next, reward, terminated [S, A, 3]   all that may follow from a state and an action; unused ones have probability 0
  start [S]                                     probability that an episode begins in a state
  fickle_starts [2]                             (with fickle_passenger) of so many resets, how many have a fickle passenger
  fickle_state, fickle_action, fickle_flag [C]  steps, and
  fickle_destinations [C, 4], fickle_after [C]  how many of 2000 such steps lead to each destination, and leave the passenger fickle
"""
import argparse

import gymnasium
import numpy as np

from recordings import Log, as_texts, write_index, write_recording

VARIANTS = {
    "CartPole-v1": {"": {}, "barto": dict(sutton_barto_reward=True, max_episode_steps=7)},
    "MountainCar-v0": {"": {}, "goal": dict(goal_velocity=0.03, max_episode_steps=7)},
    "MountainCarContinuous-v0": {"": {}, "goal": dict(goal_velocity=0.03, max_episode_steps=7)},
    "Acrobot-v1": {"": {}, "nips": dict(book_or_nips="nips", max_episode_steps=7)},
    "Pendulum-v1": {"": {}, "moon": dict(g=1.62, max_episode_steps=7)},
    "FrozenLake-v1": {
        "": {},
        "firm": dict(is_slippery=False, reward_schedule=(2, -1, -0.25)),
        "sure": dict(success_rate=0.7, max_episode_steps=7),
        "large": dict(map_name="8x8"),
    },
    "FrozenLake8x8-v1": {"": {}},
    "Taxi-v4": {
        "": {},
        "rainy": dict(is_rainy=True, rainy_probability=0.6, max_episode_steps=7),
        "fickle": dict(fickle_passenger=True, fickle_probability=0.6),
    },
}
FICKLE_DRAWS = 2000


def make(task, options):
    """As gymnasium.make() registers it; the acrobot's dynamics are an attribute there."""
    options = dict(options)
    dynamics = options.pop("book_or_nips", None)
    env = gymnasium.make(task, disable_env_checker=True, **options)
    if dynamics:
        env.unwrapped.book_or_nips = dynamics
    return env


def random_state(task, random):
    """From where episodes pass to beyond where they end."""
    if task == "CartPole-v1":  # a third each: near an end of the track, near the largest angle, anywhere
        position, angle = random.choice([-2.4, 2.4]), random.choice([-1, 1]) * np.radians(12)
        position, angle = [(position, 0), (0, angle), (0, 0)][random.randint(3)]
        return random.uniform(-1, 1, 4) * [0.1, 3, 0.05, 3] + [position, 0, angle, 0]
    if task == "Acrobot-v1":
        return random.uniform(-1, 1, 4) * [np.pi, np.pi, 4 * np.pi, 9 * np.pi]
    if task == "Pendulum-v1":
        return np.array([random.uniform(-10, 10), np.clip(random.uniform(-10, 10), -8, 8)])
    position = random.choice([random.uniform(-1.2, 0.6), random.uniform(-1.2, -1.1), random.uniform(0.4, 0.6)])
    state = np.array([position, random.uniform(-0.07, 0.07)])
    return state.astype(np.float32) if task == "MountainCarContinuous-v0" else state


def random_action(env, random):
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(random.randint(space.n))
    low, high = space.low[0], space.high[0]
    return np.array([random.choice([random.uniform(low, high), low, high], p=[0.8, 0.1, 0.1])], dtype=np.float32)


def number(action):
    return float(np.ravel(action)[0])


def as_floats(state):
    return np.array(state, dtype=np.float64)


def record_numbers(task, options, args, random):
    env = make(task, options)
    log, done, seed = Log(), True, args.seed
    for _ in range(args.steps):
        first = done
        if done:
            env.reset(seed=seed)
            seed += 1
        action = random_action(env, random)
        log.put(first=first, state=as_floats(env.unwrapped.state), action=number(action))
        observation, reward, terminated, truncated, _ = env.step(action)
        log.put(next_state=as_floats(env.unwrapped.state), obs=observation, reward=float(reward), terminated=terminated, truncated=truncated)
        done = terminated or truncated
    for _ in range(args.probes):
        env.reset(seed=seed)
        state, action = random_state(task, random), random_action(env, random)
        env.unwrapped.state = state
        observation, reward, terminated, _, _ = env.unwrapped.step(action)
        log.put(probe_state=as_floats(state), probe_action=number(action), probe_next_state=as_floats(env.unwrapped.state),
                probe_obs=observation, probe_reward=float(reward), probe_terminated=terminated)
    env.reset(seed=args.seed)
    starts = []
    for _ in range(args.resets):
        env.reset()
        starts.append(as_floats(env.unwrapped.state))
    log["start_quantiles"] = np.quantile(starts, np.linspace(0, 1, 21), axis=0)
    return log


def record_fickle(env, args, log):
    """Steps of a taxi with a passenger, from row 2: moves of fickle passengers and of others, and a wrong pick-up."""
    env.reset(seed=args.seed)
    log["fickle_starts"] = [args.resets, sum(env.reset() is not None and bool(env.unwrapped.fickle_step) for _ in range(args.resets))]
    taxi = env.unwrapped
    for state, action, flag in ((taxi.encode(2, 2, 4, 1), 0, True), (taxi.encode(2, 2, 4, 3), 3, True), (taxi.encode(2, 2, 4, 1), 0, False),
                                (taxi.encode(2, 2, 4, 1), 4, True), (taxi.encode(2, 2, 0, 1), 0, True), (taxi.encode(0, 1, 4, 0), 2, True)):
        destinations, after = [0] * 4, 0
        for _ in range(FICKLE_DRAWS):
            taxi.s, taxi.fickle_step = state, flag
            taxi.step(action)
            destinations[int(taxi.s) % 4] += 1
            after += bool(taxi.fickle_step)
        log.put(fickle_state=state, fickle_action=action, fickle_flag=flag, fickle_destinations=destinations, fickle_after=after)


def record_table(task, options, args):
    env = make(task, options)
    table = env.unwrapped.P
    shape = (env.observation_space.n, env.action_space.n, 3)
    log = Log(probability=np.zeros(shape), next=np.zeros(shape, dtype=np.int16), reward=np.zeros(shape, dtype=np.float32),
              terminated=np.zeros(shape, dtype=bool), start=env.unwrapped.initial_state_distrib)
    for state in table:
        for action in table[state]:
            for i, (probability, following, reward, terminated) in enumerate(table[state][action]):
                for key, value in dict(probability=probability, next=following, reward=reward, terminated=terminated).items():
                    log[key][state, action, i] = value
    if options.get("fickle_passenger"):
        record_fickle(env, args, log)
    return log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--probes", type=int, default=30)
    parser.add_argument("--resets", type=int, default=2000)
    args = parser.parse_args()
    tasks = {}
    for task, variants in VARIANTS.items():
        for variant, options in variants.items():
            name = task + ("." + variant if variant else "")
            has_table = task.startswith(("FrozenLake", "Taxi"))
            random = np.random.RandomState(args.seed)
            log = record_table(task, options, args) if has_table else record_numbers(task, options, args, random)
            write_recording(args.out, name, log)
            tasks[name] = dict(options=as_texts(options))
    write_index(args.out, ["gymnasium"], tasks)


if __name__ == "__main__":
    main()
