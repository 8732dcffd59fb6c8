#!/usr/bin/env python3
"""Measures training images/s of torchvision's ResNet-50 in PyTorch, like `troupe bench classifier`: 224x224, SGD with momentum 0.9 and weight decay
1e-4, label smoothing 0.1, random pictures that are ready on the device (already normalised, which ours does in the step).

    PYTHONPATH=PEERS python resnet_rival.py [THREADS] [eager|compile|reduce-overhead] [float32|bfloat16] [contiguous|channels_last] [cpu|cuda] [BATCH]

The defaults are 1 thread, eager, float32, channels_last, cpu and 8 pictures. reduce-overhead: torch.compile with CUDA graphs. bfloat16: by autocast. On
a GPU, SGD is the fused version, and matrix products use TF32, PyTorch's default. Each step ends by reading the loss, which waits for the GPU.
PEERS: the folder with the rivals' _common.py. SECS: seconds per repetition."""
import os, sys
T = int(sys.argv[1]) if len(sys.argv) > 1 else 1
os.environ["OMP_NUM_THREADS"] = str(T)
try:
    import torch, torchvision
except ImportError as error:
    sys.exit(f"resnet_rival.py measures torchvision's ResNet-50 and needs torch and a torchvision that fits it: {error}")
from _common import report, timed_rate

torch.set_num_threads(T), torch.manual_seed(0), torch.set_flush_denormal(True)
MODE = sys.argv[2] if len(sys.argv) > 2 else "eager"
TYPE = sys.argv[3] if len(sys.argv) > 3 else "float32"
LAYOUT = sys.argv[4] if len(sys.argv) > 4 else "channels_last"
DEVICE = sys.argv[5] if len(sys.argv) > 5 else "cpu"
BATCH = int(sys.argv[6]) if len(sys.argv) > 6 else 8
if DEVICE == "cuda" and not torch.cuda.is_available():
    sys.exit(f"resnet_rival.py: torch {torch.__version__} sees no GPU")
SECS = float(os.environ.get("SECS", "5"))
PIXELS, CLASSES = 224, 1000
WARM_UP = 3 if DEVICE == "cpu" else 10  # reduce-overhead captures its graphs in the first steps
layout = torch.channels_last if LAYOUT == "channels_last" else torch.contiguous_format
network = torchvision.models.resnet50().to(DEVICE, memory_format=layout)
optimizer = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True if DEVICE == "cuda" else None)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
pictures = torch.randn(BATCH, 3, PIXELS, PIXELS, device=DEVICE).contiguous(memory_format=layout)
labels = torch.randint(0, CLASSES, (BATCH,), device=DEVICE)
forward = {"eager": lambda: network, "compile": lambda: torch.compile(network),
           "reduce-overhead": lambda: torch.compile(network, mode="reduce-overhead")}[MODE]()


def step():
    optimizer.zero_grad()
    with torch.autocast(DEVICE, torch.bfloat16, enabled=TYPE == "bfloat16"):
        logits = forward(pictures)
    loss = loss_of(logits.float(), labels)
    loss.backward()
    optimizer.step()
    float(loss.detach())
    return BATCH


for _ in range(WARM_UP):
    step()
where = f"{T} thread" if DEVICE == "cpu" else f"{DEVICE} batch {BATCH}"
report(f"torch {torch.__version__} ResNet-50", f"ResNet-50 training {where} {MODE} {TYPE} {LAYOUT}", timed_rate(step, SECS), "images/s",
       dict(batch=BATCH, pixels=PIXELS, threads=T, mode=MODE, type=TYPE, layout=LAYOUT, device=torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE,
            torchvision=torchvision.__version__))
