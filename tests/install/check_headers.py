#!/usr/bin/env python3
"""Checks the headers of an installed Troupe: everything they include is installed, and a component's headers include no library that it must not need.

Usage: check_headers.py INCLUDE_FOLDER      the folder that holds env/, replay/, …
"""
import pathlib
import re
import sys

OURS = re.compile(r"(env|replay|collectives|learner|actors|experiments)/")
RULES = [  # component, its headers, what neither they nor the headers that they include may include
    ("caster", r"env/caster/", r"(torch|ATen|c10|caf|google|zmq|nlohmann)\b"),
    ("env", r"env/", r"(torch|ATen|c10|caf)/"),
    ("replay", r"(replay|env/wire)/", r"(torch|ATen|c10|caf|mujoco)/"),
    ("collectives", r"collectives/", r"(caf|mujoco|google)/"),
    ("learner", r"learner/(?!acting|agents|data|workloads)", r"(caf|mujoco)/"),
    ("agents, data and workloads", r"learner/", r"caf/"),
    ("actors", r"actors/", r"CLI/"),
]


def main():
    root = pathlib.Path(sys.argv[1])
    headers = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    includes = {h: re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', (root / h).read_text(), re.M) for h in headers}
    broken = [f"{h} includes {i}, which is not installed" for h in sorted(headers) for i in includes[h] if OURS.match(i) and i not in headers]
    for component, mine, forbidden in RULES:
        first = [h for h in sorted(headers) if re.match(mine, h)]
        if len(first) < 5:
            broken.append(f"component {component} has {len(first)} headers")
        seen, left = set(first), first
        while left:
            header = left.pop()
            for include in includes.get(header, []):
                if re.match(forbidden, include):
                    broken.append(f"{header} includes {include}, which the component {component} must not need")
                elif OURS.match(include) and include not in seen:
                    seen.add(include)
                    left.append(include)
    print("\n".join(broken) or f"{len(headers)} headers")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
