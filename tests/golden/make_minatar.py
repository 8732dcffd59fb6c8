"""Records golden data of MinAtar's games.

    python make_minatar.py --out minatar --seed 42 --steps 250 --long 1000

Needs gymnasium 1.4.0 and minatar 1.0.15. Each task is recorded with random actions, and each game in short episodes, with a
player who lasts, so that the game becomes faster and what happens late happens, and with such a player in a game that does not. The random numbers that the package draws are recorded,
too, so that a replay can draw the same. The package keeps the last action when an episode begins; here it is set to 0, so that an episode
does not depend on the one before.

index.json: the versions, and for each recording under "tasks" its options as text.
<recording>.npz, one row for each reset and each step:
  action [T]             -1: a reset
  board [T, ...]         uint8, the observation after it: bits [channel, row, column], eight in a number, the first one the highest
  reward, terminated, truncated [T]
  draws [T]              how many random numbers the package drew
and one row for each of these numbers:
  drawn [D]              a float from 0 to 1, or a whole number from 0 to range - 1
  range [D]              0: a float
"""
import argparse
import copy

import gymnasium
import minatar.gym
import numpy as np

from recordings import Log, as_texts, write_index, write_recording

GAMES = ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]
OTHER_OPTIONS = {"short": dict(sticky_action_prob=0.4, max_episode_steps=20), "level": dict(sticky_action_prob=0, difficulty_ramping=False)}
NONE, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


class RecordedRandom:
    """What the package uses of NumPy's RandomState, with a record of every number."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        self.drawn, self.range = [], []

    def rand(self, *shape):
        numbers = self.random.rand(*shape)
        self.put(numbers, 0)
        return numbers

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        numbers = self.random.randint(low, high, size)
        self.put(np.asarray(numbers) - low, high - low)
        return numbers

    def put(self, numbers, below):
        numbers = np.ravel(numbers)
        self.drawn.extend(numbers.tolist())
        self.range.extend([below] * len(numbers))


def towards(x, goal, less, more):
    return less if goal < x else more if goal > x else NONE


def wish_in_asterix(game):
    gold = [e for e in game.entities if e and e[3]]
    if not gold:
        return NONE
    x, y = min(gold, key=lambda e: abs(e[0] - game.player_x) + abs(e[1] - game.player_y))[:2]
    return towards(game.player_y, y, UP, DOWN) or towards(game.player_x, x, LEFT, RIGHT)


def wish_in_seaquest(game):
    full = game.diver_count == 6
    if full or game.diver_count and game.oxygen < 40 or game.diver_count < 0 and game.oxygen < 195:
        return UP
    if not game.sub_y and game.surface:
        return DOWN
    if game.divers:
        x, y = min(game.divers, key=lambda d: abs(d[0] - game.sub_x) + 2 * abs(d[1] - game.sub_y))[:2]
        return towards(game.sub_y, y, UP, DOWN) or towards(game.sub_x, x, LEFT, RIGHT)
    return FIRE


def wish_in_space_invaders(game):
    columns = np.flatnonzero(game.alien_map.any(axis=0)) + (game.alien_dir if game.alien_move_timer < 4 else 0)
    return towards(game.pos, columns[np.argmin(abs(columns - game.pos))], LEFT, RIGHT) or (NONE if game.shot_timer else FIRE)


def wish_in_breakout(game):
    ball = copy.deepcopy(game)
    while not ball.terminal and not (ball.ball_y == 8 and ball.ball_dir in (2, 3)):
        ball.act(NONE)
    return towards(game.pos, ball.ball_x, LEFT, RIGHT)


def wish_in_freeway(game):
    return UP


WISHES = {
    "Asterix": wish_in_asterix,
    "Breakout": wish_in_breakout,
    "Freeway": wish_in_freeway,
    "Seaquest": wish_in_seaquest,
    "SpaceInvaders": wish_in_space_invaders,
}


def survival(game, action, wish, random):
    """In how many of some attempts the player still lives a few steps after this action."""
    lived = 0
    for _ in range(4):
        tried = copy.deepcopy(game, {id(game.random): random})
        over, last = tried.act(action)[1], action
        for _ in range(9):
            if over:
                break
            if random.rand() >= 0.1:
                last = wish(tried) if random.rand() < 0.5 else random.randint(6)
            over = tried.act(last)[1]
        lived += not over
    return lived


def lasting_action(wish, game, random):
    looks_ahead = wish not in (wish_in_breakout, wish_in_freeway)
    if random.rand() < {wish_in_breakout: 0.3, wish_in_freeway: 0.03}.get(wish, 0.005):
        return random.randint(6)
    wished = wish(game)
    if not looks_ahead:
        return wished
    lived = {wished: survival(game, wished, wish, random)}
    if lived[wished] < 4:
        lived.update((int(action), survival(game, int(action), wish, random)) for action in random.permutation(6) if action != wished)
    return max(lived, key=lived.get)


def record(task, options, seed, steps, lasting):
    env = gymnasium.make(f"MinAtar/{task}", disable_env_checker=True, **options)
    package, random = env.unwrapped.game, np.random.RandomState(seed)
    drawn = package.random = package.env.random = RecordedRandom(seed)
    log, over = Log(), True
    for _ in range(steps):
        before = len(drawn.drawn)
        action, reward, terminated, truncated = -1, 0, False, False
        if over:
            package.last_action = NONE
            seen, _ = env.reset()
        else:
            action = lasting_action(WISHES[task[:-3]], package.env, random) if lasting else random.randint(env.action_space.n)
            seen, reward, terminated, truncated, _ = env.step(action)
        log.put(action=np.int8(action), board=np.packbits(seen.transpose(2, 0, 1)), reward=np.int16(reward), terminated=terminated,
                truncated=truncated, draws=np.int16(len(drawn.drawn) - before))
        over = terminated or truncated
    log.update(drawn=np.array(drawn.drawn), range=np.array(drawn.range, dtype=np.int8))
    return log


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--steps", type=int, default=250, help="of each recording with random actions")
    parser.add_argument("--long", type=int, default=1000, help="of a player who lasts; half of it in a game that does not become faster")
    args = parser.parse_args()
    gymnasium.logger.min_level = gymnasium.logger.ERROR  # version 0 is no mistake
    minatar.gym.register_envs()
    tasks = {}
    for game in GAMES:
        long = max(args.long, 2520) if game in ("Breakout", "Freeway") else args.long  # to the end of an episode; for bricks hit in succession
        for variant, version, steps in (("", 0, args.steps), ("", 1, args.steps), ("short", 0, args.steps), ("level", 0, args.long // 2),
                                        ("lasting", 0, long)):
            task, options = f"{game}-v{version}", OTHER_OPTIONS.get(variant, {})
            name = task + ("." + variant if variant else "")
            log = record(task, options, args.seed + len(tasks), steps, variant in ("level", "lasting"))
            write_recording(args.out, name, log)
            tasks[name] = dict(options=as_texts(options))
    write_index(args.out, ["gymnasium", "minatar"], tasks)


if __name__ == "__main__":
    main()
