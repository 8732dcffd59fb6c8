#!/usr/bin/env python3
"""data_golden.py OUT.safetensors: pictures, and the results of Pillow and torchvision for them, for data_pictures_test.

Needs torch, torchvision, Pillow and numpy. Written with torchvision of torch 2.11."""
import io
import json
import sys

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import functional as F

rng = np.random.default_rng(7)


def scene(height, width):
    """Edges, slopes and noise, as a photograph has."""
    y, x = np.mgrid[0:height, 0:width]
    picture = np.stack([x * 255 // width, y * 255 // height, (x + y) * 7 % 256], -1)
    picture[height // 4: height // 2, width // 3: width // 2] = (250, 10, 40)
    return np.clip(picture + rng.integers(-20, 20, picture.shape), 0, 255).astype(np.uint8)


def encoded(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


out = {}
source = scene(61, 83)
image = Image.fromarray(source)
out["source"] = source

for name, (box, size) in {"down": ((5, 7, 50, 60), (24, 24)), "up": ((40, 30, 12, 15), (32, 32)), "wide": ((0, 0, 61, 83), (20, 64)),
                          "same": ((3, 3, 24, 24), (24, 24))}.items():
    top, left, height, width = box
    out[f"resized_{name}"] = np.array(F.resized_crop(image, top, left, height, width, list(size)))
out["evaluated"] = np.array(F.center_crop(F.resize(image, 40), 32))
tall = Image.fromarray(scene(90, 50))
out["tall"] = np.array(tall)
out["evaluated_tall"] = np.array(F.center_crop(F.resize(tall, 37), 32))

tensor = torch.from_numpy(source).permute(2, 0, 1)
for name, changed in {"brightness": F.adjust_brightness(tensor, 1.3), "contrast": F.adjust_contrast(tensor, 0.6),
                      "saturation": F.adjust_saturation(tensor, 1.7), "hue": F.adjust_hue(tensor, -0.2)}.items():
    out[f"jitter_{name}"] = changed.permute(1, 2, 0).contiguous().numpy()

source = source[10:45, 20:61]
image = Image.fromarray(source)
grey = image.convert("L")
with_alpha = image.copy()
with_alpha.putalpha(Image.fromarray((source[..., 0] // 2 + 60).astype(np.uint8)))
files = {
    "jpeg": encoded(image, format="JPEG", quality=85),
    "jpeg_444_progressive": encoded(image, format="JPEG", quality=92, subsampling=0, progressive=True),
    "jpeg_grey": encoded(grey, format="JPEG", quality=85),
    "jpeg_cmyk": encoded(image.convert("CMYK"), format="JPEG", quality=90),
    "png": encoded(image, format="PNG"),
    "png_grey": encoded(grey, format="PNG"),
    "png_bits": encoded(image.convert("1"), format="PNG"),
    "png_palette": encoded(image.quantize(16), format="PNG"),
    "png_alpha": encoded(with_alpha, format="PNG"),
}
for name, data in files.items():
    out[f"file_{name}"] = data
    out[f"pixels_{name}"] = np.array(Image.open(io.BytesIO(data.tobytes())).convert("RGB"))
deep = (source[..., 0].astype(np.uint16) << 8) | 0x5A
out["file_png_16"] = encoded(Image.fromarray(deep), format="PNG")
out["pixels_png_16"] = np.repeat((deep >> 8).astype(np.uint8)[..., None], 3, -1)  # Pillow cuts 16 bits at 255

header, offset = {"__metadata__": {"made_by": f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}"}}, 0
for name, value in out.items():
    header[name] = {"dtype": "U8", "shape": list(value.shape), "data_offsets": [offset, offset + value.size]}
    offset += value.size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    for value in out.values():
        file.write(np.ascontiguousarray(value).tobytes())
