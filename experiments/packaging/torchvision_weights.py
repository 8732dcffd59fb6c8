#!/usr/bin/env python3
"""torchvision_weights.py FOLDER [SEED]: writes torchvision's networks with random weights, and their outputs, for the test that
compares Troupe's networks with them (tests/learner/workloads/inception_test.cpp). Nothing is downloaded.

One safetensors file per network: "weight.<name>" all parameters and buffers, "input" float32 [2, 3, height, width], "logits" in
evaluation, "training_logits" in training mode (batch statistics, no dropout); of Inception-v3 also "training_auxiliary". Needs torch,
torchvision and safetensors (pip install torch torchvision safetensors)."""
import pathlib
import sys

import torch
import torchvision
from safetensors.torch import save_file

NETWORKS = {
    "resnet18": (96, {}),
    "resnet50": (96, {}),
    "inception_v3": (299, {"aux_logits": True, "transform_input": False, "init_weights": True, "dropout": 0.0}),
}


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (pixels, options) in NETWORKS.items():
        torch.manual_seed(int(sys.argv[2]) if len(sys.argv) == 3 else 0)
        network = getattr(torchvision.models, name)(weights=None, **options)
        pictures = torch.randn(2, 3, pixels, pixels)
        with torch.no_grad():
            network.train()(torch.randn(2, 3, pixels, pixels))  # makes running averages differ from 0 and 1
            tensors = {"weight." + key: value.clone() for key, value in network.state_dict().items()}
            tensors["input"] = pictures
            tensors["logits"] = network.eval()(pictures)
            if name == "inception_v3":
                trained = network.train()(pictures)
                tensors["training_logits"], tensors["training_auxiliary"] = trained.logits, trained.aux_logits
            else:
                tensors["training_logits"] = network.train()(pictures)
        save_file({key: value.contiguous() for key, value in tensors.items()}, folder / f"{name}.safetensors")


if __name__ == "__main__":
    main()
