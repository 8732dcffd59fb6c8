#!/usr/bin/env python3
"""Measures updates/s of MR.Q from states, alternately for Troupe and PyTorch: the same networks, batch size and losses, on prepared batches.

    experiments/bench/peers/mrq_rival.py PROGRAM [--modes eager,compiled] [--turns 3] [--seconds 10] [--threads 1] [--device cpu|cuda]

PROGRAM: troupe_bench, or troupe; ours is the entry "MR.Q 512 wide" of its stage learner. Run this script with a Python that has torch. Like Troupe's, the
PyTorch version follows the description of MR.Q with DR.Q's changes: an update trains the encoder over five unrolled steps, then both critics, then the
policy, with AdamW (fused). With --device cuda, the batches are on the GPU. eager: float32, as written. compiled: torch.compile for each loss, bfloat16 by
autocast, measured after compilation. Each line is JSON: updates per second of wall-clock time and per second of processor time, and the turn. The last
lines are the medians of the ratio ours / theirs within a turn. Exit code 1: a ratio is below its goal, four for eager and two for compiled."""
import argparse, json, os, statistics, subprocess, sys, time

GOALS = {"eager": 4, "compiled": 2}
STATES, ACTIONS, BATCH, HORIZON, N_STEP, BINS, WIDTH = 24, 6, 256, 5, 3, 65, 512


def peer(mode, seconds, threads, device):
    import torch
    from torch import nn
    from torch.nn import functional as F
    torch.set_num_threads(threads)
    torch.set_default_device(device)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)

    def layers(inputs, widths, activation, outputs, last=False):
        made = []
        for width in widths + [outputs] * last:
            made += [nn.Linear(inputs, width), nn.LayerNorm(width), activation()]
            inputs = width
        return nn.Sequential(*made, *([] if last else [nn.Linear(inputs, outputs)]))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.state = layers(STATES, [WIDTH] * 2, nn.ELU, WIDTH, last=True)
            self.action = nn.Sequential(nn.Linear(ACTIONS, 256), nn.ELU())
            self.joint = layers(WIDTH + 256, [WIDTH] * 2, nn.ELU, WIDTH)
            self.model = nn.Linear(WIDTH, WIDTH + BINS)

        def pair(self, state, action):
            return self.joint(torch.cat([state, self.action(action)], 1))

    def networks():
        return Encoder(), nn.ModuleList(layers(WIDTH, [WIDTH] * 3, nn.ELU, 1) for _ in range(2)), layers(WIDTH, [WIDTH] * 2, nn.ReLU, ACTIONS)

    trained, critics, policy = networks()
    current, target_critics, target_policy = networks()
    previous = Encoder()
    for network in (current, target_critics, target_policy, previous):
        network.requires_grad_(False)
    optimizers = [torch.optim.AdamW(network.parameters(), lr=3e-4, weight_decay=1e-2, fused=True) for network in (trained, critics, policy)]
    grid = torch.linspace(-10, 10, BINS)
    bins = grid.sign() * grid.abs().expm1()

    def two_hot(values):
        above = torch.searchsorted(bins, values.clamp(bins[0], bins[-1])).clamp(1, BINS - 1)
        share = (values - bins[above - 1]) / (bins[above] - bins[above - 1])
        return torch.zeros(values.shape[0], BINS).scatter_(1, (above - 1)[:, None], (1 - share)[:, None]).scatter_(1, above[:, None], share[:, None])

    def encoder_loss(observation, action, wanted, within, known):
        state, loss = trained.state(observation[:, 0]), 0
        for t in range(HORIZON):
            out = trained.model(trained.pair(state, action[:, t]))
            state, logits = out[:, :WIDTH], out[:, WIDTH:]
            target = known[t + 1]
            loss = loss + ((state.float() - target).square().mean(1) * within[:, t]).mean()
            loss = loss - 0.1 * ((F.log_softmax(logits.float(), 1) * wanted[:, t]).sum(1) * within[:, t]).mean()
            similar = F.normalize(state, dim=1) @ F.normalize(target, dim=1).t() / 0.1
            loss = loss - 0.1 * (F.log_softmax(similar.float(), 1).diagonal() * within[:, t]).mean()
        return loss

    def critic_target(last, noise, reward, discount):
        state = previous.state(last)
        action = (torch.tanh(target_policy(state)) + noise).clamp(-1, 1)
        pair = previous.pair(state, action)
        return reward + discount * torch.minimum(target_critics[0](pair), target_critics[1](pair)).float()

    def critic_loss(pair, target):
        errors = [critic(pair).float() - target for critic in critics]
        return sum(F.huber_loss(error, torch.zeros_like(error)) for error in errors), torch.maximum(errors[0].abs(), errors[1].abs()).clamp_min(1)

    def policy_loss(state):
        pair = current.pair(state, torch.tanh(policy(state)))
        return -(critics[0](pair) + critics[1](pair)).float().mean() / 2

    half = mode == "compiled"
    parts = [encoder_loss, critic_target, critic_loss, policy_loss]
    if half:
        parts = [torch.compile(part) for part in parts]
    learn_encoder, make_target, learn_critic, learn_policy = parts
    batches = [(torch.randn(BATCH, HORIZON + 1, STATES), torch.rand(BATCH, HORIZON, ACTIONS) * 2 - 1, torch.rand(BATCH, HORIZON)) for _ in range(16)]

    def step(optimizer, loss):
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def update(number):
        observation, action, reward = batches[number % len(batches)]
        within = torch.ones(BATCH, HORIZON)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            with torch.no_grad():
                known = current.state(observation.transpose(0, 1))
                wanted = two_hot(reward.flatten()).view(BATCH, HORIZON, BINS)
            loss = learn_encoder(observation, action, wanted, within, known)
        step(optimizers[0], loss)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            with torch.no_grad():
                noise = (torch.randn(BATCH, ACTIONS) * 0.2).clamp(-0.3, 0.3)
                returns = sum(0.99**k * reward[:, k] for k in range(N_STEP))[:, None]
                target = make_target(observation[:, N_STEP], noise, returns, 0.99**N_STEP)
                pair = current.pair(known[0], action[:, 0])
            loss, priorities = learn_critic(pair, target)
        step(optimizers[1], loss)
        critics.requires_grad_(False)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            loss = learn_policy(known[0])
        step(optimizers[2], loss)
        critics.requires_grad_(True)
        return priorities

    for number in range(4):
        update(number)
    begin, used, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - begin < seconds:
        update(count).cpu()  # users send them to the replay
        count += 1
    return count / (time.perf_counter() - begin), count / (time.process_time() - used)


def ours(program, seconds, threads, device):
    command = [program, *([] if os.path.basename(program) == "troupe_bench" else ["bench"]), "learner", "--device", device, "--task", "MR.Q 512", "--json", "--seconds", str(seconds),
               "--repetitions", "1"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    values = {line["metric"]: line["value"] for line in lines if line["config"]["threads"] == str(threads) and line["config"].get("device", "cpu") == device}
    return values["MR.Q updates"], values["MR.Q updates per processor second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["eager", "compiled"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        print(json.dumps(peer(options.peer, options.seconds, options.threads, options.device)))
        return
    ratios = {mode: [] for mode in options.modes}
    for turn in range(options.turns):
        wall, processor = ours(options.program, options.seconds, options.threads, options.device)
        print(json.dumps({"turn": turn, "library": "ours", "updates_per_second": wall, "updates_per_processor_second": processor}), flush=True)
        for mode in options.modes:
            command = [sys.executable, __file__, options.program, "--peer", mode, "--seconds", str(options.seconds), "--threads", str(options.threads),
                       "--device", options.device]
            environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
            if options.device == "cpu":
                environment["CUDA_VISIBLE_DEVICES"] = ""
            peer_wall, peer_processor = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout)
            print(json.dumps({"turn": turn, "library": "PyTorch " + mode, "updates_per_second": peer_wall, "updates_per_processor_second": peer_processor}), flush=True)
            ratios[mode].append(processor / peer_processor)
    for mode, values in ratios.items():
        print(json.dumps({"ours / PyTorch " + mode: statistics.median(values), "of": values, "goal": GOALS[mode]}))
    sys.exit(any(statistics.median(values) < GOALS[mode] for mode, values in ratios.items()))


if __name__ == "__main__":
    main()
