#!/usr/bin/env python3
"""Training images/s of torchvision's ResNet-50 in PyTorch, as `troupe bench classifier` measures the classifier's: 224x224, batch 8, SGD with
momentum 0.9 and weight decay 1e-4, label smoothing 0.1, random pictures that lie ready (normalised already, which ours does in the step).

    PYTHONPATH=PEERS python resnet_rival.py [THREADS] [eager|compile] [float32|bfloat16] [contiguous|channels_last]

bfloat16: by autocast. PEERS: the folder with the rivals' _common.py. SECS: seconds of a repetition."""
import os, sys
T = int(sys.argv[1]) if len(sys.argv) > 1 else 1
os.environ["OMP_NUM_THREADS"] = str(T)
import torch, torchvision
from _common import report, timed_rate

torch.set_num_threads(T), torch.manual_seed(0), torch.set_flush_denormal(True)
MODE = sys.argv[2] if len(sys.argv) > 2 else "eager"
TYPE = sys.argv[3] if len(sys.argv) > 3 else "float32"
LAYOUT = sys.argv[4] if len(sys.argv) > 4 else "channels_last"
SECS = float(os.environ.get("SECS", "5"))
BATCH, PIXELS, CLASSES = 8, 224, 1000
layout = torch.channels_last if LAYOUT == "channels_last" else torch.contiguous_format
network = torchvision.models.resnet50().to(memory_format=layout)
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
pictures = torch.randn(BATCH, 3, PIXELS, PIXELS).contiguous(memory_format=layout)
labels = torch.randint(0, CLASSES, (BATCH,))
forward = torch.compile(network) if MODE == "compile" else network


def step():
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=TYPE == "bfloat16"):
        logits = forward(pictures)
    loss = loss_of(logits.float(), labels)
    loss.backward()
    optimizer.step()
    float(loss.detach())
    return BATCH


for _ in range(3):
    step()
report(f"torch {torch.__version__} ResNet-50", f"ResNet-50 training {T} thread {MODE} {TYPE} {LAYOUT}", timed_rate(step, SECS), "images/s",
       dict(batch=BATCH, pixels=PIXELS, threads=T, mode=MODE, type=TYPE, layout=LAYOUT, torchvision=torchvision.__version__))
