#!/usr/bin/env python3
"""Measures D4PG updates/s from pixels in PyTorch, with the work of `troupe bench learner`: the same encoders, heads, batches, random shift,
categorical projection, pre-tanh penalty, two Adam optimizers and averaged targets, on prepared batches. Uses channels-last, and shifts by one
gather of bytes.

    PYTHONPATH=PEERS python d4pg_pixels_rival.py [THREADS] [eager|compile] [float32|bfloat16] [stride4|drq]...

bfloat16: convolutions under autocast. PEERS: the folder with the rivals' _common.py. SECS: seconds per repetition. DEVICE: "cpu" or "cuda", also for the
batches. eager|compile|reduce-overhead: the last one compiles with CUDA graphs."""
import copy, os, sys
T = int(sys.argv[1]) if len(sys.argv) > 1 else 1
os.environ["OMP_NUM_THREADS"] = str(T)
import torch, torch.nn as nn, torch.nn.functional as F
from _common import report, timed_rate

torch.set_num_threads(T), torch.manual_seed(0), torch.set_flush_denormal(True)
MODE = sys.argv[2] if len(sys.argv) > 2 else "eager"
TYPE = sys.argv[3] if len(sys.argv) > 3 else "float32"
SECS = float(os.environ.get("SECS", "5"))
DEVICE = os.environ.get("DEVICE", "cpu")
torch.set_default_device(DEVICE)
ATOMS, LOW, HIGH, SHIFT = 51, 0.0, 100.0, 4
# encoder: (kernel, stride) of its convolutions of 32 channels; image [channels, height, width]; width of the heads; actions; batch
PROBLEMS = {"stride4": (((4, 4), (3, 2), (3, 2)), (3, 64, 64), 256, 1, 128),
            "drq": (((3, 2), (3, 1), (3, 1), (3, 1)), (9, 84, 84), 1024, 6, 64)}


class Encoder(nn.Module):
    def __init__(self, kernels, channels):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(channels if i == 0 else 32, 32, k, s) for i, (k, s) in enumerate(kernels))

    def forward(self, x):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=TYPE == "bfloat16"):
            for convolution in self.convolutions:
                x = F.relu(convolution(x))
        return x.permute(0, 2, 3, 1).flatten(1).float()


class Head(nn.Module):
    def __init__(self, features, width, extra, outputs):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, 50), nn.LayerNorm(50), nn.Tanh())
        self.mlp = nn.Sequential(nn.Linear(50 + extra, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, outputs))

    def forward(self, features, action=None):
        x = self.trunk(features)
        return self.mlp(x if action is None else torch.cat([x, action], 1))


def prepare(images):
    """Shifts each image by up to SHIFT pixels, with replicated borders; returns float32 around 0, channels-last."""
    count, _, height, width = images.shape
    move = torch.randint(-SHIFT, SHIFT + 1, (2, count, 1))
    y = (torch.arange(height) + move[0]).clamp(0, height - 1)
    x = (torch.arange(width) + move[1]).clamp(0, width - 1)
    moved = images[torch.arange(count)[:, None, None], :, y[:, :, None], x[:, None, :]]  # [count, height, width, channels]
    return moved.permute(0, 3, 1, 2).float().div_(255).sub_(0.5)


def measure(name):
    kernels, shape, width, actions, batch_size = PROBLEMS[name]
    encoder = Encoder(kernels, shape[0]).to(memory_format=torch.channels_last)
    features = encoder(torch.zeros(1, *shape)).shape[1]
    critic, policy = Head(features, width, actions, ATOMS), Head(features, width, 0, actions)
    target_encoder, target_critic = copy.deepcopy(encoder), copy.deepcopy(critic)
    live = [*encoder.parameters(), *critic.parameters()]
    target = [*target_encoder.parameters(), *target_critic.parameters()]
    of_critic, of_policy = torch.optim.Adam(live, 3e-4), torch.optim.Adam(policy.parameters(), 3e-4)
    support = torch.linspace(LOW, HIGH, ATOMS)
    spacing = (HIGH - LOW) / (ATOMS - 1)

    def critic_loss(seen, next_seen, action, reward, discount):
        with torch.no_grad():
            next_features = target_encoder(next_seen)
            mass = F.softmax(target_critic(next_features, torch.tanh(policy(next_features))), 1)
            position = ((reward[:, None] + discount[:, None] * support - LOW) / spacing).clamp(0, ATOMS - 1)
            below = position.floor()
            above = position - below
            projected = torch.zeros_like(mass).scatter_add_(1, below.long(), mass * (1 - above))
            projected.scatter_add_(1, (below.long() + 1).clamp(max=ATOMS - 1), mass * above)
        features = encoder(seen)
        return -(projected * F.log_softmax(critic(features, action), 1)).sum(1).mean(), features.detach()

    def policy_loss(features):
        raw = policy(features)
        value = (F.softmax(critic(features, torch.tanh(raw)), 1) * support).sum(1).mean()
        return (raw.abs() - 1.5).relu().square().mean() - value

    if MODE != "eager":
        how = {} if MODE == "compile" else {"mode": MODE}
        critic_loss, policy_loss = torch.compile(critic_loss, **how), torch.compile(policy_loss, **how)
    image = lambda: (torch.rand(batch_size, *shape) * 255).byte()
    batches = [(image(), image(), torch.rand(batch_size, actions) * 2 - 1, torch.rand(batch_size), torch.full((batch_size,), 0.95))
               for _ in range(4)]
    count = 0

    def step():
        nonlocal count
        seen, next_seen, *rest = batches[count % len(batches)]
        count += 1
        torch.compiler.cudagraph_mark_step_begin()
        loss, features = critic_loss(prepare(seen), prepare(next_seen), *rest)
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
        critic.requires_grad_(False)
        loss_of_policy = policy_loss(features.clone() if MODE == "reduce-overhead" else features)
        of_policy.zero_grad()
        loss_of_policy.backward()
        of_policy.step()
        critic.requires_grad_(True)
        with torch.no_grad():
            torch._foreach_lerp_(target, live, 0.01)
        return float(loss.detach()), float(loss_of_policy.detach())  # users log them

    def chunk():
        step()
        return 1

    for _ in range(4):
        chunk()
    report(f"torch {torch.__version__} D4PG from pixels", f"D4PG {name} pixels {T} thread {MODE} {TYPE}", timed_rate(chunk, SECS), "updates/s",
           dict(encoder=name, batch=batch_size, threads=T, mode=MODE, type=TYPE, device=DEVICE))


for name in sys.argv[4:] or PROBLEMS:
    measure(name)
