#!/usr/bin/env python3
"""data_rival.py FOLDER [--seconds S]: measures pictures/s of torchvision and Pillow on one thread, from the JPEGs of an image folder to
the output of `troupe bench data --data FOLDER`. Prints one JSON object per line. Needs torch, torchvision, Pillow."""
import argparse
import json
import pathlib
import time

import torch
from PIL import Image
from torchvision import transforms as T

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--seconds", type=float, default=1)
parser.add_argument("--repetitions", type=int, default=3)
options = parser.parse_args()
torch.set_num_threads(1)
files = sorted(p for p in pathlib.Path(options.folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))[:256]
normalise = [T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
crop = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
stages = {
    "JPEGs decoded alone": T.Compose([]),
    "decoded, random resized crop, flip, normalised": T.Compose(crop + normalise),
    "the same as bytes": T.Compose(crop + [T.PILToTensor()]),
    "as bytes with all of colour jitter": T.Compose(crop + [T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.PILToTensor()]),
    "decoded, resized, middle cut, normalised": T.Compose([T.Resize(256), T.CenterCrop(224)] + normalise),
}
for metric, transform in stages.items():
    rates = []
    for _ in range(options.repetitions):
        count, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < options.seconds:
            transform(Image.open(files[count % len(files)]).convert("RGB"))
            count += 1
        rates.append(count / (time.perf_counter() - begin))
    print(json.dumps({"bench": "data", "peer": "torchvision", "metric": metric, "value": sorted(rates)[len(rates) // 2],
                      "unit": "pictures/s"}), flush=True)
