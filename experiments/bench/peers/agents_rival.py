#!/usr/bin/env python3
"""Trains the same task with ours, Stable-Baselines3 and CleanRL in turn, with equal environment steps and equal hyperparameters, and compares
returns, seconds to a fixed score, and environment steps/s.

    experiments/bench/peers/agents_rival.py measure PROGRAM CASE... --out results.jsonl [--seeds 1,2] [--cleanrl FOLDER --cleanrl-python PYTHON] [--python PYTHON]
    experiments/bench/peers/agents_rival.py table results.jsonl

CASE: one of those that `measure --help` lists, or all. FOLDER: a clone of CleanRL's repository; without it CleanRL is left out. PYTHON:
interpreters with torch, stable-baselines3 and gymnasium[mujoco], and for CleanRL with torch, gymnasium==0.29.1, numpy<2, tyro and tensorboard. Results
that the file already has are not measured again, so an interrupted measurement goes on where it ended. Nothing else may run meanwhile.

A return is the mean of 20 episodes of the trained policy without exploration. CleanRL's programs do not evaluate: theirs is the mean of the last 20
training episodes. Seconds to the score: training time until the mean return of an evaluation (20 episodes; CleanRL: the last 20 training episodes)
reaches it first; the evaluations' own time is taken off for Stable-Baselines3, and overlaps with training in ours."""
import argparse, collections, csv, json, os, pathlib, re, statistics, subprocess, sys, tempfile, time

EVALUATION_EPISODES = 20
FINAL_EPISODES = 20
MUJOCO = {"HalfCheetah-v5": "half_cheetah", "Hopper-v5": "hopper", "Walker2d-v5": "walker2d"}

# What all three libraries get. "period": environment steps between evaluations; "score": what the time is measured to (None: none).
Case = collections.namedtuple("Case", "task steps period score ours sb3 cleanrl")


def off_policy(algorithm, task, steps, period, score, start, learning_rate, layers, batch, experiment, sets, cleanrl=True):
    """SAC or TD3 with one update of `batch` transitions per step after `start` random steps. CleanRL's layers are 256, 256 always."""
    sb3 = {"algorithm": algorithm.upper(), "learning_rate": learning_rate, "learning_starts": start, "batch_size": batch, "buffer_size": 1000000,
           "train_freq": 1, "gradient_steps": 1, "policy_kwargs": {"net_arch": layers}}
    if algorithm == "td3":
        sb3["noise"] = 0.1
    theirs = [f"cleanrl/{algorithm}_continuous_action.py", "--learning-starts", str(start), "--batch-size", str(batch)]
    theirs += ["--learning-rate", str(learning_rate)] if algorithm == "td3" else ["--policy-lr", str(learning_rate), "--q-lr", str(learning_rate)]
    return Case(task, steps, period, score, [experiment, *sets], sb3, theirs if cleanrl else None)


def pendulum(algorithm, width, batch):
    learning_rate = 1e-3
    sets = ["environment.task=Pendulum-v1", "replay.minimum_items=1000", "actors.random_steps=1000", f"{algorithm}.policy_learning_rate={learning_rate}",
            f"{algorithm}.critic_learning_rate={learning_rate}", f"{algorithm}.policy_layers={width},{width}", f"{algorithm}.critic_layers={width},{width}",
            f"{algorithm}.batch_size={batch}", f"replay.samples_per_insert={batch}"]
    sets += [f"{algorithm}.temperature_learning_rate={learning_rate}"] if algorithm == "sac" else []
    return off_policy(algorithm, "Pendulum-v1", 20000, 1000, -200, 1000, learning_rate, [width, width], batch, f"{algorithm}_half_cheetah", sets)


def mujoco(algorithm, task):
    learning_rate, layers = (3e-4, [256, 256]) if algorithm == "sac" else (1e-3, [400, 300])
    return off_policy(algorithm, task, 100000, 10000, None, 10000, learning_rate, layers, 256, f"{algorithm}_{MUJOCO[task]}", [], cleanrl=False)


def ppo_mujoco(task):
    sb3 = {"algorithm": "PPO", "learning_rate": 3e-4, "n_steps": 2048, "batch_size": 64, "n_epochs": 10, "ent_coef": 0.0}
    return Case(task, 300000, 30000, None, [f"ppo_{MUJOCO[task]}"], sb3, None)


CASES = {
    "sac_pendulum": pendulum("sac", 256, 256),
    "td3_pendulum": pendulum("td3", 256, 256),
    "sac_pendulum_small": pendulum("sac", 64, 100),  # RLtools' sizes
    "td3_pendulum_small": pendulum("td3", 64, 100),
    # Eight environments, 128 steps of each, four minibatches, four passes: CleanRL's ppo.py has four environments by default.
    "ppo_cartpole": Case("CartPole-v1", 200000, 10000, 475, ["ppo_cartpole"],
                         {"algorithm": "PPO", "n_envs": 8, "learning_rate": 2.5e-4, "n_steps": 128, "batch_size": 256, "n_epochs": 4, "ent_coef": 0.01},
                         ["cleanrl/ppo.py", "--num-envs", "8"]),
    **{f"{algorithm}_{name}": mujoco(algorithm, task) for algorithm in ("sac", "td3") for task, name in MUJOCO.items()},
    **{f"ppo_{name}": ppo_mujoco(task) for task, name in MUJOCO.items()},
}


def train_sb3(case, seed):
    """Runs in PYTHON, prints one JSON line."""
    import warnings

    import gymnasium, numpy, stable_baselines3
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.noise import NormalActionNoise

    warnings.filterwarnings("ignore")
    settings = dict(case.sb3)
    algorithm = getattr(stable_baselines3, settings.pop("algorithm"))
    environments = make_vec_env(case.task, n_envs=settings.pop("n_envs", 1), seed=seed)
    if "noise" in settings:
        size = environments.action_space.shape[-1]
        settings["action_noise"] = NormalActionNoise(numpy.zeros(size), settings.pop("noise") * numpy.ones(size))
    evaluated = make_vec_env(case.task, n_envs=1, seed=seed + 1000)
    model = algorithm("MlpPolicy", environments, device="cpu", seed=seed, **settings)

    class Evaluation(BaseCallback):
        next_at, away, reached = case.period, 0.0, None

        def _on_step(self):
            if self.num_timesteps >= self.next_at:
                self.next_at += case.period
                now = time.perf_counter()
                mean, _ = evaluate_policy(self.model, evaluated, n_eval_episodes=EVALUATION_EPISODES, warn=False)
                if self.reached is None and case.score is not None and mean >= case.score:
                    self.reached = now - begin - self.away
                self.away += time.perf_counter() - now
            return True

    evaluation = Evaluation()
    begin = time.perf_counter()
    model.learn(case.steps, callback=evaluation)
    seconds = time.perf_counter() - begin - evaluation.away
    mean, _ = evaluate_policy(model, evaluated, n_eval_episodes=FINAL_EPISODES, warn=False)
    print(json.dumps({"return": float(mean), "reached": evaluation.reached, "seconds": seconds, "steps_per_second": model.num_timesteps / seconds,
                      "version": f"stable-baselines3 {stable_baselines3.__version__}"}))


def sb3(options, name, case, seed):
    done = subprocess.run([options.python, __file__, "sb3", name, str(seed)], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    return json.loads(done.stdout.strip().splitlines()[-1])


def cleanrl(options, name, case, seed):
    if case.cleanrl is None or options.cleanrl is None:
        return None
    command = [options.cleanrl_python, "-u", *case.cleanrl, "--env-id", case.task, "--total-timesteps", str(case.steps), "--seed", str(seed), "--no-cuda"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(options.cleanrl), "CUDA_VISIBLE_DEVICES": ""}
        command[2] = str(options.cleanrl / command[2])
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
            returns, begin, reached, last = collections.deque(maxlen=20), None, None, None
            for line in process.stdout:
                found = re.search(r"global_step=(\d+), episodic_return=\[?\s*(-?[0-9.e+]+)", line)
                if found:
                    last = time.perf_counter()
                    if begin is None:  # the imports' time is not counted; the first episode's is added below
                        begin, first = last, int(found[1])
                    step, _ = int(found[1]), returns.append(float(found[2]))
                    if reached is None and case.score is not None and len(returns) == 20 and statistics.mean(returns) >= case.score:
                        reached = last - begin
        if process.returncode != 0 or begin is None:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {"return": statistics.mean(returns), "reached": reached, "seconds": last - begin, "steps_per_second": (step - first) / (last - begin),
            "version": "cleanrl"}


def ours(options, name, case, seed):
    with tempfile.TemporaryDirectory() as folder:
        sets = [f"seed={seed}", f"stop.environment_steps={case.steps}", f"evaluation.period={case.period}", f"evaluation.episodes={EVALUATION_EPISODES}",
                f"evaluation.final_episodes={FINAL_EPISODES}", "evaluation.video=false", *case.ours[1:]]
        command = [options.program, "train", case.ours[0], "--runs", folder, "--quiet", *(word for value in sets for word in ("--set", value))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        metrics = next(pathlib.Path(folder).glob("**/metrics.csv"))
        with open(metrics, newline="") as file:
            rows = list(csv.DictReader(file))
    evaluations = [(float(row["training_seconds"]), float(row["evaluation_return"])) for row in rows if row["kind"] == "evaluation"]
    final = next(row for row in rows if row["kind"] == "final")
    reached = next((seconds for seconds, value in evaluations if case.score is not None and value >= case.score), None)
    seconds = float(final["training_seconds"])
    return {"return": float(final["evaluation_return"]), "reached": reached, "seconds": seconds, "steps_per_second": float(final["environment_steps"]) / seconds,
            "version": "ours"}


def measure(options):
    names = list(CASES) if options.cases == ["all"] else options.cases
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise SystemExit(f"case {unknown[0]}: must be one of {', '.join(CASES)}, or all")
    done = set()
    if options.out.exists():
        done = {(line["case"], line["library"], line["seed"]) for line in map(json.loads, options.out.read_text().splitlines())}
    for seed in options.seeds:
        for name in names:
            for library in (ours, sb3, cleanrl):
                if (name, library.__name__, seed) in done:
                    continue
                result = library(options, name, CASES[name], seed)
                if result is not None:
                    with open(options.out, "a") as file:
                        file.write(json.dumps({"case": name, "library": library.__name__, "seed": seed, **result}) + "\n")
                    print(name, library.__name__, seed, result, flush=True)


def table(options):
    cells = collections.defaultdict(dict)
    for line in map(json.loads, options.out.read_text().splitlines()):
        cells[line["case"]].setdefault(line["library"], []).append(line)
    print("| case | task, steps | library | returns | seconds to the score | steps/s | ours is faster |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name, libraries in cells.items():
        case = CASES[name]
        speed = {library: statistics.median(line["steps_per_second"] for line in lines) for library, lines in libraries.items()}
        wait = {library: statistics.median(line["reached"] or float("inf") for line in lines) for library, lines in libraries.items()}
        for library, lines in libraries.items():
            reached = ", ".join("never" if line["reached"] is None else f"{line['reached']:.1f}" for line in lines) if case.score is not None else ""
            ratio = f"{speed['ours'] / speed[library]:.2f} in steps/s" if library != "ours" and "ours" in speed else ""
            if ratio and case.score is not None and wait["ours"] < float("inf"):
                ratio += f", {wait[library] / wait['ours']:.2f} to {case.score}"
            returns = ", ".join(f"{line['return']:.1f}" for line in lines)
            print(f"| {name} | {case.task}, {case.steps:,} | {library} | {returns} | {reached} | {speed[library]:,.0f} | {ratio} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("measure", help=f"cases: {', '.join(CASES)}")
    run.add_argument("program")
    run.add_argument("cases", nargs="+")
    run.add_argument("--out", type=pathlib.Path, required=True)
    run.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2])
    run.add_argument("--cleanrl", type=pathlib.Path)
    run.add_argument("--cleanrl-python", default=sys.executable)
    run.add_argument("--python", default=sys.executable)
    show = commands.add_parser("table")
    show.add_argument("out", type=pathlib.Path)
    one = commands.add_parser("sb3")
    one.add_argument("case", choices=CASES)
    one.add_argument("seed", type=int)
    options = parser.parse_args()
    if options.command == "sb3":
        train_sb3(CASES[options.case], options.seed)
    else:
        {"measure": measure, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
