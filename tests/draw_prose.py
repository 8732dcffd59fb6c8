#!/usr/bin/env python3
"""Prints random comments and messages of the repository for review; --check refuses phrases that STYLE rules out.

Usage: draw_prose.py [--count 50] [--seed 1] [--kind comment|message|readme] [FOLDER...]
       draw_prose.py --check [FOLDER...]
A comment is a block of // or /// lines, or a comment after code. A message is a string literal of at least four words. A readme is a
sentence of a README.md.
"""
import argparse
import os
import random
import re
import sys

import check_layers

FOLDERS = ["README.md", "env", "replay", "collectives", "learner", "actors", "experiments"]

# What reads like a translation -> what to write. Each is a regular expression, matched without regard to case.
PHRASES = {
    r"to the last bits?\b": "bit for bit",
    r"\bhangs? on\b": "depends on",
    r"\bwho waits\b": "the waiting request",
    r"\banew\b": "again; restarts",
    r"\b(is|are|was|were) told\b": "gets; is asked to",
    r"\bgo(es|ing)? on (from|with|where)\b": "continues from",
    r"\bbelieves? (nothing|no)\b": "treat as untrusted",
    r"\bshall\b": "must",
    r"\b(no|some)body\b": "name the process, rank or caller",
    r"\blets? in\b": "allows; admits",
    r"\blies? (in|at|beside)\b": "is in",
    r"\bas long as\b": "while",
    r"\bof (one|its|their)'?s own\b(?! (process|thread|folder|port))": "its; separate",
    r"\bthose (who|that|which)\b": "the noun",
    r"\bwhat its tests run against\b": "its test fixtures",
    r"\bwords\b.{0,20}\brefused\b": "refused with a message",
}


def files_of(root, folders):
    inside = tuple(folder.rstrip("/") + "/" for folder in folders)
    return [f for f in check_layers.tracked(root)
            if (f in folders or f.startswith(inside)) and re.search(r"\.(hpp|h|cpp|cu|cuh|proto|md)$", f) and "RESULTS" not in f]


def comments_of(text):
    """(line, comment) of C++ and Protobuf"""
    block, first = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        whole = re.match(r"\s*///?\s?(.*)", line)
        if whole:
            first = first or number
            block.append(whole.group(1).strip())
            continue
        if block:
            yield first, " ".join(block)
            block, first = [], 0
        behind = re.search(r'[;,{})]\s*//[/<]*\s+(.*)', line)
        if behind and line.count('"', 0, behind.start()) % 2 == 0 and not behind.group(1).startswith("namespace"):
            yield number, behind.group(1)


def messages_of(text):
    """(line, message): neighbouring string literals are one message."""
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
        message = " ".join(re.sub(r'"\s*"', "", found.group(0)).strip('"').replace("\\n", " ").replace('\\"', '"').split())
        if "#include" not in text[text.rfind("\n", 0, found.start()) + 1:found.start()] and len(re.findall(r"[A-Za-z]{2,}", message)) >= 4:
            yield text.count("\n", 0, found.start()) + 1, message


def sentences_of(text):
    text = re.sub(r"```.*?```", lambda block: "\n" * block.group(0).count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        for sentence in re.split(r"(?<=[.;:]) ", line.strip("|- ")):
            if len(sentence.split()) >= 4 and not sentence.startswith("#"):
                yield number, sentence


def prose(root, folders):
    for file in files_of(root, folders):
        with open(os.path.join(root, file), encoding="utf-8", errors="replace") as opened:
            text = opened.read()
        if file.endswith(".md"):
            for line, sentence in sentences_of(text):
                yield "readme", file, line, sentence
        elif re.search(r"\.(hpp|h|cpp|cu|cuh|proto)$", file):
            for line, comment in comments_of(text):
                yield "comment", file, line, comment
            for line, message in messages_of(text):
                yield "message", file, line, message


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=["comment", "message", "readme"])
    parser.add_argument("--check", action="store_true", help="print every place with a phrase that is ruled out; exit code 1 if there is one")
    options = parser.parse_args()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    drawn = [entry for entry in prose(root, options.folders or FOLDERS) if options.kind in (None, entry[0])]
    if options.check:
        bad = 0
        for kind, file, line, text in drawn:
            for phrase, instead in PHRASES.items():
                if found := re.search(phrase, text, re.I):
                    print(f"{file}:{line}: {kind}: '{found.group(0)}'; write: {instead}")
                    bad += 1
        print(f"{len(drawn)} places, {bad} phrases to rewrite")
        return 1 if bad else 0
    random.Random(options.seed).shuffle(drawn)
    for kind, file, line, text in drawn[:options.count]:
        print(f"{file}:{line}: {kind}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
