#!/usr/bin/env python3
"""Runs the benchmarks of Troupe and of its rivals in turn, and prints the ratios as a Markdown table.

    experiments/bench/peers/rivals.py PROGRAM PEERS STAGE... [--rounds 3] [--seconds 1]

PROGRAM: the built troupe; PEERS: the folder with the rivals' run.sh; STAGE: environment, pool, games, render, replay, learner, classifier, collectives, ddp, agent,
or all. Each round runs ours and then the rivals; a figure is the median of the rounds' medians. Ratio: how many times faster ours is.
Nothing else may run meanwhile. $PEERS_VENV: the folder for the rivals' virtual environments. Exit code 1: a ratio is below its goal, which is 1
unless another one is known, a rival gave no figure, or a line of the table is of several figures of ours."""
import argparse, collections, json, os, statistics, subprocess, sys, tempfile

RESNETS = [("eager", "float32", "contiguous"), ("eager", "float32", "channels_last"), ("compile", "float32", "channels_last"),
           ("eager", "bfloat16", "channels_last"), ("compile", "bfloat16", "channels_last")]
GAMES = ["Acrobot-v1", "CartPole-v1", "FrozenLake-v1", "FrozenLake8x8-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1", "Taxi-v4",
         *(f"MinAtar/{game}-v{version}" for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders") for version in (0, 1))]
TRANSPORTS = ["shared memory, one client process", "ZeroMQ, tcp loopback, one client process"]
ON_PROCESSOR = {"learner", "classifier"}  # stages that also measure on a GPU, which the rivals do not use
# stage -> (stage of `troupe bench`, rivals: names of run.sh, or a script beside this one with its arguments, [(what, ours: metric and config values, rival's metric and, above 1, the ratio's goal)]); a metric ending in "latency" is a time.
STAGES = {
    "environment": ("environment", ["dm_control"], [
        (f"{task} states, 1 thread", (f"{ours}, states, control steps (resets included)", {"threads": "1"}), f"{task} state control steps/s")
        for task, ours in (("cheetah-run", "cheetah_run"), ("walker-walk", "walker_walk"), ("cartpole-swingup", "cartpole_swingup"))
    ] + [(f"{task} resets", (f"{ours}, resets", {}), f"{task} reset/s")
         for task, ours in (("cheetah-run", "cheetah_run"), ("walker-walk", "walker_walk"), ("cartpole-swingup", "cartpole_swingup"))]),
    "pool": ("pool", ["envpool"], [
        (f"{ours} states, {threads} thread{'s' * (threads > 1)}, {mode}", (f"{ours}, states, control steps (resets included)", {"threads": str(threads), "mode": mode, "playing": "shared"}), f"{theirs} {setting}")
        for ours, theirs, settings in (
            ("cheetah_run", "DMC cheetah-run state", ((1, "sync 1", "sync 1/1/1thr"), (1, "async 16/8", "async 16/8/1thr"), (2, "sync 16", "sync 16/16/2thr"),
                                                      (2, "async 16/8", "async 16/8/2thr"), (2, "async 256/128", "async 256/128/2thr"))),
            ("walker_walk", "DMC walker-walk state", ((2, "async 16/8", "async 16/8/2thr"),)),
            ("humanoid_run", "DMC humanoid-run state", ((2, "async 16/8", "async 16/8/2thr"),)),
            ("HalfCheetah-v5", "Gym HalfCheetah-v4", ((2, "async 16/8", "async 16/8/2thr"),)),
            ("Ant-v5", "Gym Ant-v4", ((2, "async 16/8", "async 16/8/2thr"),)))
        for threads, mode, setting in settings]),
    "games": ("games", [("games_rival.py", "--seconds", "0.5", "--repetitions", "1")], [
        (f"{task}, {n} environments, 1 thread", (f"{task}, steps (resets included)", {"threads": "1", "mode": f"sync {n}"}), f"{task} {kind} {n}", 20)
        for task in GAMES for n, kind in ((16, "sync"), (16, "async"), (16, "numpy"), (256, "sync"), (256, "numpy"))]),
    "render": ("render", ["dm_control_pixels"], [
        (f"{task} {what}, 84x84, all effects, {renderer}", (f"{ours}, {metric}, 84x84, all effects", {"renderer": renderer, "threads": "1"}), f"{task} {theirs}")
        for task, ours in (("cheetah-run", "cheetah_run"), ("walker-walk", "walker_walk"), ("cartpole-swingup", "cartpole_swingup"))
        for renderer in ("caster", "opengl")
        for what, metric, theirs in (("step and picture", "step and picture", "pixels step+render 84x84"), ("picture alone", "picture alone", "render only 84x84"))]),
    "replay": ("replay", ["reverb", "cpprb", "torchrl"], [
        (f"{kind}, insert 1 at a time, same process", (f"{kind} append+take+insert, 1 at a time", {"transport": "pointer"}), theirs)
        for kind in ("state", "pixel") for theirs in (f"{kind} uniform insert trajectory_writer, in-process client", f"{kind} uniform add single")
    ] + [
        (f"{kind}, insert 64 at a time, same process", (f"{kind} append+take+insert, 64 at a time", {"transport": "pointer"}), theirs)
        for kind in ("state", "pixel") for theirs in (f"{kind} uniform add batch 64", f"{kind} uniform extend batch 64")
    ] + [
        (f"{kind}, batches of 256, same process", (f"{kind} sample+gather of 256", {"transport": "pointer"}), f"{kind} uniform sample(256)")
        for kind in ("state", "pixel")
    ] + [
        (f"{kind}, prioritized, insert {n} at a time, same process", (f"{kind} prioritized append+take+insert, {n} at a time", {}), f"{kind} prioritized {theirs}")
        for kind in ("state", "pixel") for n, theirs in ((1, "add single"), (64, "add batch 64"), (64, "extend batch 64"))
    ] + [
        (f"{kind}, prioritized, batches of 256{' and their new priorities' if more else ''}, same process",
         (f"{kind} prioritized sample+gather{more and '+update'} of 256", {}), f"{kind} prioritized sample(256){more}")
        for kind in ("state", "pixel") for more in ("", "+update_priorities")
    ] + [
        (f"{kind}, insert {n} at a time, another process, {by.split(',')[0]}", (f"{kind} insert, {n} at a time", {"transport": by}),
         f"{kind} uniform insert trajectory_writer, localhost 1 client proc") for kind in ("state", "pixel") for n in (1, 16) for by in TRANSPORTS
    ] + [
        (f"{kind}, sampled items, another process, {by.split(',')[0]}", (f"{kind} sample of 256", {"transport": by}),
         f"{kind} uniform sample TrajectoryDataset, localhost 1 client proc") for kind in ("state", "pixel") for by in TRANSPORTS]),
    "learner": ("learner", ["d4pg", *(("d4pg_pixels_rival.py", "1", mode, kind) for mode in ("eager", "compile") for kind in ("float32", "bfloat16"))], [
        (f"D4PG updates, {t} thread", ("D4PG updates", {"threads": str(t), "networks": "24 states, 6 actions, critic 400-300, policy 300-200"}),
         f"D4PG update b256 {t} thread {mode} scatter", 2 if mode == "eager" else 1) for t in (1, 2) for mode in ("eager", "compile")
    ] + [
        (f"D4PG updates, {ours}, 1 thread", ("D4PG updates", {"threads": "1", "networks": ours}), f"D4PG {encoder} pixels 1 thread {mode} {kind}",
         2 if (encoder, mode) == ("drq", "eager") else 1)
        for encoder, ours in (("stride4", "64x64 grey pixels, stack 3, encoder stride4, 256-256"), ("drq", "84x84 colour pixels, stack 3, encoder drq, 1024-1024"))
        for mode in ("eager", "compile") for kind in ("float32", "bfloat16")]),
    "classifier": ("classifier", [("resnet_rival.py", "1", *how) for how in RESNETS], [
        (f"ResNet-50, {how[1]}", ("ResNet-50 training", {"type": how[1], "device": "cpu"}), f"ResNet-50 training 1 thread {' '.join(how)}") for how in RESNETS]),
    "collectives": ("collectives", ["gloo"], [
        (f"all_reduce of {size} B, {name}, latency", ("all_reduce latency", {"backend": backend, "ranks": "2", "bytes": str(size)}), f"allreduce {size} B latency (median of iters)")
        for backend, name in (("shared_memory", "shared memory"), ("tcp", "TCP"))
        for size in (1024, 65536, 1048576, 26214400, 104857600)]),
    "ddp": ("ddp", ["ddp"], [
        (f"ResNet-50, {n} process{'es' * (n > 1)}, batch 8 each, 1 thread each", ("ResNet-50 training", {"processes": str(n)}),
         f"train images/s {n} proc x batch 8, 1 thread each") for n in (1, 2)
    ] + [("ResNet-50, scaling efficiency from 1 process to 2", ("scaling efficiency", {"processes": "2"}), "scaling efficiency 2 proc / (2 x 1 proc)")]),
    "agent": ("agent", ["ddpg", "sb3"], [
        (f"cheetah_run end to end, {threads} learner thread{'s' * (threads > 1)}", ("D4PG end to end", {"learner_threads": str(threads)}), f"{theirs} end-to-end {threads} thread", goal)
        for threads in (1, 2) for theirs, goal in (("cheetah-run DDPG", 1.5), ("TD3 cheetahrun", 4))]),
}


def lines(text):
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def measure(options, stage, ours, theirs, failed):
    bench, rivals, _ = STAGES[stage]
    command = [options.program, "bench", bench, "--json", "--seconds", str(options.seconds), *(["--device", "cpu"] if bench in ON_PROCESSOR else [])]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800).stdout
    for figure in lines(text):
        ours[figure["metric"], tuple(sorted(figure["config"].items()))].append(figure["value"])
    environment = dict(os.environ, SECS=str(options.seconds), BENCH_OUT=os.path.join(tempfile.gettempdir(), "rivals.jsonl"))
    for rival in rivals:
        if isinstance(rival, str):
            arguments = ["bash", os.path.join(options.peers, "run.sh"), rival]
        else:
            python = os.path.join(environment.get("PEERS_VENV") or os.path.expanduser(os.path.join(environment.get("XDG_CACHE_HOME", "~/.cache"), "troupe-peers")),
                                  "torch", "bin", "python")
            if not os.path.exists(python):
                print(f"rivals.py: {rival[0]} needs {python} with torch and torchvision: `PEERS/run.sh d4pg` makes it", file=sys.stderr)
                failed.add(rival[0])
                continue
            arguments = [python, os.path.join(os.path.dirname(os.path.abspath(__file__)), rival[0]), *rival[1:]]
            environment.update(PYTHONPATH=os.path.abspath(options.peers), PYTHONDONTWRITEBYTECODE="1", CUDA_VISIBLE_DEVICES="")
        run = subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=3600)
        found = [figure for figure in lines(run.stdout) if figure.get("value") is not None]
        if not found:
            print(f"rivals.py: {rival} gave no figure: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            failed.add(rival if isinstance(rival, str) else " ".join(rival))
        for figure in found:
            theirs[figure["metric"], figure["peer"]].append(figure["value"])


def show(stage, ours, theirs):
    """Prints the table; returns the number of ratios below their goals and of lines that are of several figures of ours."""
    missed = 0
    print(f"\n| {stage} | ours | the rival's | ratio | goal |\n| --- | --- | --- | --- | --- |")
    for what, (metric, config), rival_metric, *goals in STAGES[stage][2]:
        figures = {key: values for key, values in ours.items() if key[0] == metric and config.items() <= dict(key[1]).items()}
        if len(figures) > 1:
            print(f"rivals.py: {what}: {len(figures)} figures of ours match: {list(figures)}", file=sys.stderr)
            missed += 1
            continue
        mine = [value for values in figures.values() for value in values]
        for (name, peer), values in theirs.items():
            if name != rival_metric or not mine:
                continue
            a, b = statistics.median(mine), statistics.median(values)
            ratio, goal = b / a if "latency" in metric else a / b, goals[0] if goals else 1
            missed += ratio < goal
            print(f"| {what} | {a:,.5g} | {b:,.5g} ({peer.split(' / ')[0]}: {rival_metric}) | {ratio:.2f} | {goal:g}{', missed' if ratio < goal else ''} |", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program"), parser.add_argument("peers")
    parser.add_argument("stage", nargs="+", choices=[*STAGES, "all"])
    parser.add_argument("--rounds", type=int, default=3), parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.peers, "run.sh")):
        sys.exit(f"rivals.py: PEERS '{options.peers}' has no run.sh; name the folder with the rivals' scripts")
    missed, failed = 0, set()
    for stage in STAGES if "all" in options.stage else options.stage:
        ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
        for _ in range(options.rounds):
            measure(options, stage, ours, theirs, failed)
        missed += show(stage, ours, theirs)
    print(f"\n{missed} below the goal; no figure of {', '.join(sorted(failed)) or 'none'}")
    sys.exit(1 if missed or failed else 0)


main()
