#!/usr/bin/env python3
"""Trains the same task with Troupe ("ours"), Stable-Baselines3, CleanRL and RLtools in turn, with equal environment steps and hyperparameters,
and compares returns, seconds to a fixed score, environment steps/s, and processor time.

    experiments/bench/peers/agents_rival.py measure PROGRAM CASE... --out results.jsonl [--seeds 1,2] [--python PYTHON]
        [--libraries ours,sb3] [--cleanrl FOLDER --cleanrl-python PYTHON] [--rltools PROGRAM]
    experiments/bench/peers/agents_rival.py table results.jsonl [--goal RATIO]

CASE: one of those that `measure --help` lists, or all. FOLDER: a clone of CleanRL's repository; without it CleanRL is left out. PYTHON:
interpreters with torch, stable-baselines3, gymnasium[mujoco] and mujoco==3.17.0, and for CleanRL with torch, gymnasium==0.29.1, numpy<2, tyro and tensorboard.
--rltools: your own program built on RLtools' headers. It is started with an algorithm (sac, td3), a seed and a score, trains RLtools' Pendulum with the
settings of the small cases, and prints a line of JSON with the keys of a result: return, reached, seconds, steps_per_second, processor_seconds. Results
that are already in the file are not measured again, so an interrupted measurement can be continued. If other programs run meanwhile, compare
processor seconds.

--libraries: some of ours, ours_bfloat16, ours_cuda, sb3, cleanrl and rltools. ours_bfloat16 is ours with products in bfloat16 (SAC and TD3 only).
ours_cuda is ours with updates on a GPU; compare only its returns, because the rivals stay on the processor.

Every library computes with one thread. Ours plays, evaluates and stores on separate threads, in parallel with the learner; the rivals do these one after
the other. A return is the mean over 20 episodes of the trained policy without exploration (1,000 on Pendulum-v1). CleanRL's programs do not evaluate: their
return is the mean of the last 20 training episodes. Seconds to the score: training time until the mean return of an evaluation first reaches it. The time
of evaluations is subtracted for the rivals; in ours they overlap with training. For CleanRL, it is the time from the end of the first episode to the start
of the first 20 consecutive training episodes whose mean reaches the score. Processor seconds: of the training; for ours, of the whole program with its
evaluations."""
import argparse, collections, csv, json, os, pathlib, re, resource, statistics, subprocess, sys, tempfile, time

EVALUATION_EPISODES = 20
FINAL_EPISODES = collections.defaultdict(lambda: 20, {"Pendulum-v1": 1000})  # its returns depend on the start: with 20 episodes, the standard error is 20
MUJOCO = {"HalfCheetah-v5": "half_cheetah", "Hopper-v5": "hopper", "Walker2d-v5": "walker2d"}

ONE_THREAD = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}}

# The libraries' settings. "period": environment steps between evaluations (0: only at the end); "score": the score to which time is measured (None: none);
# "rltools": its algorithm.
Case = collections.namedtuple("Case", "task steps period score ours sb3 cleanrl rltools", defaults=[None, None])


def off_policy(algorithm, task, steps, period, score, start, learning_rate, layers, batch, experiment, sets, cleanrl=False, rltools=None):
    """SAC or TD3 with one update of `batch` transitions per step after `start` random steps. CleanRL's layers are always 256, 256."""
    sb3 = {"algorithm": algorithm.upper(), "learning_rate": learning_rate, "learning_starts": start, "batch_size": batch, "buffer_size": 1000000,
           "train_freq": 1, "gradient_steps": 1, "policy_kwargs": {"net_arch": layers}}
    if algorithm == "td3":
        sb3["noise"] = 0.1
    theirs = [f"cleanrl/{algorithm}_continuous_action.py", "--learning-starts", str(start), "--batch-size", str(batch)]
    theirs += ["--learning-rate", str(learning_rate)] if algorithm == "td3" else ["--policy-lr", str(learning_rate), "--q-lr", str(learning_rate)]
    return Case(task, steps, period, score, [experiment, *sets], sb3, theirs if cleanrl else None, rltools)


def pendulum(algorithm, width, batch, **rivals):
    """10,000 updates after 1,000 random steps."""
    learning_rate = 1e-3
    sets = ["environment.task=Pendulum-v1", "replay.minimum_items=1000", "actors.random_steps=1000", f"{algorithm}.policy_learning_rate={learning_rate}",
            f"{algorithm}.critic_learning_rate={learning_rate}", f"{algorithm}.policy_layers={width},{width}", f"{algorithm}.critic_layers={width},{width}",
            f"{algorithm}.batch_size={batch}", f"replay.samples_per_insert={batch}"]
    sets += [f"{algorithm}.temperature_learning_rate={learning_rate}"] if algorithm == "sac" else []
    return off_policy(algorithm, "Pendulum-v1", 11000, 1000, -200, 1000, learning_rate, [width, width], batch, f"{algorithm}_half_cheetah", sets, **rivals)


def mujoco(algorithm, task):
    learning_rate, layers = (3e-4, [256, 256]) if algorithm == "sac" else (1e-3, [400, 300])
    return off_policy(algorithm, task, 100000, 0, None, 10000, learning_rate, layers, 256, f"{algorithm}_{MUJOCO[task]}", [])


def ppo_mujoco(task):
    # Ours halves the squared error of the value; Stable-Baselines3 does not.
    sb3 = {"algorithm": "PPO", "learning_rate": 3e-4, "n_steps": 2048, "batch_size": 64, "n_epochs": 10, "ent_coef": 0.0, "vf_coef": 0.5}
    return Case(task, 204800, 0, None, [f"ppo_{MUJOCO[task]}", "ppo.value_weight=1"], sb3)


CASES = {
    "sac_pendulum": pendulum("sac", 256, 256, cleanrl=True),
    "td3_pendulum": pendulum("td3", 256, 256, cleanrl=True),
    "sac_pendulum_small": pendulum("sac", 64, 100, rltools="sac"),  # RLtools' sizes
    "td3_pendulum_small": pendulum("td3", 64, 100, rltools="td3"),
    # Eight environments with 128 steps each, four minibatches, four passes; CleanRL's ppo.py has four environments by default. The learning rate decays
    # to 0 in all three. CleanRL and ours halve the squared error of the value; Stable-Baselines3 does not.
    "ppo_cartpole": Case("CartPole-v1", 200000, 10000, 475, ["ppo_cartpole", "replay.discount=0.99", "ppo.rollout=128", "ppo.epochs=4", "ppo.minibatches=4",
                          "ppo.learning_rate=2.5e-4", "learner.learning_rate.updates=195", "ppo.lambda=0.95", "ppo.entropy=0.01"],
                         {"algorithm": "PPO", "n_envs": 8, "learning_rate": 2.5e-4, "falling": True, "n_steps": 128, "batch_size": 256, "n_epochs": 4,
                          "ent_coef": 0.01, "vf_coef": 0.25},
                         ["cleanrl/ppo.py", "--num-envs", "8"]),
    **{f"{algorithm}_{name}": mujoco(algorithm, task) for algorithm in ("sac", "td3") for task, name in MUJOCO.items()},
    **{f"ppo_{name}": ppo_mujoco(task) for task, name in MUJOCO.items()},
}


def train_sb3(case, seed):
    """Runs in PYTHON and prints one line of JSON."""
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
    if settings.pop("falling", False):
        first = settings["learning_rate"]
        settings["learning_rate"] = lambda remaining: first * remaining
    if "noise" in settings:
        size = environments.action_space.shape[-1]
        settings["action_noise"] = NormalActionNoise(numpy.zeros(size), settings.pop("noise") * numpy.ones(size))
    evaluated = make_vec_env(case.task, n_envs=1, seed=seed + 1000)
    model = algorithm("MlpPolicy", environments, device="cpu", seed=seed, **settings)

    class Evaluation(BaseCallback):
        next_at, away, away_processor, reached = case.period or float("inf"), 0.0, 0.0, None

        def _on_step(self):
            if self.num_timesteps >= self.next_at:
                self.next_at += case.period
                now, processor = time.perf_counter(), time.process_time()
                mean, _ = evaluate_policy(self.model, evaluated, n_eval_episodes=EVALUATION_EPISODES, warn=False)
                if self.reached is None and case.score is not None and mean >= case.score:
                    self.reached = now - begin - self.away
                self.away += time.perf_counter() - now
                self.away_processor += time.process_time() - processor
            return True

    evaluation = Evaluation()
    begin, begin_processor = time.perf_counter(), time.process_time()
    model.learn(case.steps, callback=evaluation)
    seconds = time.perf_counter() - begin - evaluation.away
    processor = time.process_time() - begin_processor - evaluation.away_processor
    mean, _ = evaluate_policy(model, make_vec_env(case.task, n_envs=20, seed=seed + 2000), n_eval_episodes=FINAL_EPISODES[case.task], warn=False)
    print(json.dumps({"return": float(mean), "reached": evaluation.reached, "seconds": seconds, "steps_per_second": model.num_timesteps / seconds,
                      "processor_seconds": processor, "updates": model._n_updates, "version": f"stable-baselines3 {stable_baselines3.__version__}"}))


def sb3(options, name, case, seed):
    done = subprocess.run([options.python, __file__, "sb3", name, str(seed)], check=True, stdout=subprocess.PIPE, text=True, env=ONE_THREAD)
    return json.loads(done.stdout.strip().splitlines()[-1])


def cleanrl(options, name, case, seed):
    if case.cleanrl is None or options.cleanrl is None:
        return None
    command = [options.cleanrl_python, "-u", *case.cleanrl, "--env-id", case.task, "--total-timesteps", str(case.steps), "--seed", str(seed), "--no-cuda"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**ONE_THREAD, "PYTHONPATH": str(options.cleanrl)}
        command[2] = str(options.cleanrl / command[2])
        with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
            returns, ends, begin, reached = [], [], None, None
            for line in process.stdout:
                found = re.search(r"global_step=(\d+), episodic_return=\[?\s*(-?[0-9.e+]+)", line)
                if found:
                    returns.append(float(found[2]))
                    ends.append(time.perf_counter())
                    now = (ends[-1], int(found[1]), processor_seconds(process.pid))
                    begin = begin or now  # the time of imports is not counted
                    if reached is None and case.score is not None and len(returns) > 20 and statistics.mean(returns[-20:]) >= case.score:
                        reached = ends[-21] - ends[0]
        if process.returncode != 0 or begin is None:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    seconds, steps, processor = (last - first for last, first in zip(now, begin))
    return {"return": statistics.mean(returns[-20:]), "reached": reached, "seconds": seconds, "steps_per_second": steps / seconds,
            "processor_seconds": processor, "version": "cleanrl"}


def processor_seconds(process):
    words = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def rltools(options, name, case, seed):
    if case.rltools is None or options.rltools is None:
        return None
    # Debian 12's OpenBLAS treats newer Intel processors as if they only had SSE3, which costs a factor of 3.5.
    wide = {"OPENBLAS_CORETYPE": "SkylakeX"} if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text() else {}
    done = subprocess.run([str(options.rltools), case.rltools, str(seed), str(case.score)], check=True, stdout=subprocess.PIPE, text=True,
                          env={**ONE_THREAD, **wide})
    return json.loads(done.stdout)


def seconds_at(updates, rows):
    """Returns the training time at a number of updates, interpolated between the progress rows, of which there are two per second. A row of an evaluation
    has the time before the evaluation."""
    before = (0.0, 0.0)
    for after in ((float(row["updates"]), float(row["training_seconds"])) for row in rows):
        if after[0] >= updates:
            return before[1] + (after[1] - before[1]) * (updates - before[0]) / max(after[0] - before[0], 1)
        before = after
    return before[1]


def ours_cuda(options, name, case, seed):
    shown = {key: value for key, value in ONE_THREAD.items() if key != "CUDA_VISIBLE_DEVICES"}
    return ours(options, name, case, seed, ["learner.device=cuda"], shown)


def ours_bfloat16(options, name, case, seed):
    algorithm = name.split("_")[0]
    return ours(options, name, case, seed, [f"{algorithm}.precision=bfloat16"]) if algorithm in ("sac", "td3") else None


def ours(options, name, case, seed, more=(), environment=ONE_THREAD):
    with tempfile.TemporaryDirectory() as folder:
        sets = [f"seed={seed}", f"stop.environment_steps={case.steps}", f"evaluation.period={case.period}", f"evaluation.episodes={EVALUATION_EPISODES}",
                f"evaluation.final_episodes={FINAL_EPISODES[case.task]}", "evaluation.video=false", *case.ours[1:], *more]
        command = [options.program, "train", case.ours[0], "--runs", folder, "--quiet", *(word for value in sets for word in ("--set", value))]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        metrics = next(pathlib.Path(folder).glob("**/metrics.csv"))
        with open(metrics, newline="") as file:
            rows = list(csv.DictReader(file))
    evaluations = [row for row in rows if row["kind"] == "evaluation"]
    final = next(row for row in rows if row["kind"] == "final")
    first = next((row for row in evaluations if case.score is not None and float(row["evaluation_return"]) >= case.score), None)
    reached = first and seconds_at(float(first["updates"]), [row for row in rows if row["kind"] in ("progress", "final")])
    seconds = float(final["training_seconds"])
    return {"return": float(final["evaluation_return"]), "reached": reached, "seconds": seconds, "steps_per_second": float(final["environment_steps"]) / seconds,
            "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "updates": int(final["updates"]), "version": "ours"}


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
            for library in (ours, ours_bfloat16, ours_cuda, sb3, cleanrl, rltools):
                if library.__name__ not in options.libraries:
                    continue
                if (name, library.__name__, seed) in done:
                    continue
                result = library(options, name, CASES[name], seed)
                if result is not None:
                    with open(options.out, "a") as file:
                        file.write(json.dumps({"case": name, "library": library.__name__, "seed": seed, **result}) + "\n")
                    print(name, library.__name__, seed, result, flush=True)


def median(lines, key):
    """Returns infinity if a score was not reached or nothing was measured: an interrupted run only has its return."""
    never = float("inf")
    values = [never if line[key] is None else line[key] for line in lines if line[key] is not None or key == "reached"]
    return statistics.median(values) if values else never


def table(options):
    """Returns whether our rates are at least --goal times those of the rivals."""
    reached_goal = True
    cells = collections.defaultdict(dict)
    for line in map(json.loads, options.out.read_text().splitlines()):
        cells[line["case"]].setdefault(line["library"], []).append(line)
    print("| case | library | returns | seconds to the score | steps/s | processor seconds | ours is faster: to the score, in steps/s, in processor time |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for name, libraries in cells.items():
        case = CASES[name]
        medians = {library: [median(lines, key) for key in ("reached", "steps_per_second", "processor_seconds")] for library, lines in libraries.items()}
        for library, lines in libraries.items():
            reached = ", ".join("never" if line["reached"] is None else f"{line['reached']:.1f}" for line in lines) if case.score is not None else ""
            ratio = ""
            if not library.startswith("ours") and "ours" in libraries:
                (our_wait, our_speed, our_time), (wait, speed, time_of) = medians["ours"], medians[library]
                known = [(wait, our_wait), (our_speed, speed), (time_of, our_time)]
                reached_goal &= max(our_speed, speed) == float("inf") or our_speed / speed >= options.goal
                ratio = ", ".join(f"{over / under:.2f}" for over, under in known if max(over, under) < float("inf"))
            returns = ", ".join(f"{line['return']:.1f}" for line in lines)
            speed, processor = (f"{value:,.{digits}f}" if value < float("inf") else "not measured" for value, digits in zip(medians[library][1:], (0, 1)))
            print(f"| {name} | {library} | {returns} | {reached} | {speed} | {processor} | {ratio} |")
    return reached_goal


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
    run.add_argument("--rltools", type=pathlib.Path)
    run.add_argument("--python", default=sys.executable)
    run.add_argument("--libraries", type=lambda text: text.split(","), default=["ours", "sb3", "cleanrl", "rltools"])
    show = commands.add_parser("table")
    show.add_argument("out", type=pathlib.Path)
    show.add_argument("--goal", type=float, default=0, help="exit code 1 where ours makes fewer times the steps/s of a rival")
    one = commands.add_parser("sb3")
    one.add_argument("case", choices=CASES)
    one.add_argument("seed", type=int)
    options = parser.parse_args()
    if options.command == "sb3":
        train_sb3(CASES[options.case], options.seed)
    elif options.command == "measure":
        measure(options)
    else:
        sys.exit(0 if table(options) else 1)


if __name__ == "__main__":
    main()
