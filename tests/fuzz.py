#!/usr/bin/env python3
"""Builds the libFuzzer targets of everything that reads outside data (fuzz_*.cpp) with Clang's AddressSanitizer and UndefinedBehaviorSanitizer, runs
each for a limited time, and prints a table of executions and coverage.

    tests/fuzz.py [--seconds 60] [--jobs 1] [--targets wire,npz] [--build build/fuzz] [--no-build] [--merge]

Each target starts with its seeds (the files in tests/fuzz_seeds/<target>/ and what its function fuzz_seeds() makes) and with the inputs that earlier runs
found, in <build>/corpus/<target>/. An input that crashes its target, or takes 10 s or 2 GiB, is kept in <build>/findings/, and the exit code is 1: fix the
cause, and add the input to the files, which the unit tests fuzz_seeds:<target> run in every build. --merge: afterwards adds to the files the smallest inputs
that reach new code, so that they stay few.
Exit code 77: clang++-16 is missing (Debian's clang-16, libclang-rt-16-dev and libomp-16-dev)."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SEEDS = SOURCE / "tests/fuzz_seeds"
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"]
MERGED_BYTES = 8 << 10  # of a target's seeds
MERGED_FILES = 64


def build(options):
    if not (options.build / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "fuzz", "-B", options.build, "-DBUILD_TESTING=ON", "-DTROUPE_BATCH=30"], cwd=SOURCE, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", options.build, f"-j{os.cpu_count()}", "fuzz_targets"], check=True)


def targets_of(options):
    found = sorted(path.name.removeprefix("fuzz_") for path in (options.build / "fuzz").glob("fuzz_*"))
    unknown = sorted(set(options.targets) - set(found))
    if unknown:
        raise SystemExit(f"--targets {unknown[0]}: must be one of {', '.join(found)}")
    return options.targets or found


def command(options, target, *words):
    corpus = options.build / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    program = options.build / "fuzz" / f"fuzz_{target}"
    made = options.build / "seeds" / target
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    subprocess.run([program, "--write-seeds", made], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seeds = [made, SEEDS / target] if (SEEDS / target).is_dir() else [made]
    return [program, *words, *LIMITS], corpus, seeds


def fuzz(options, target):
    """The row of a target."""
    findings = options.build / "findings"
    findings.mkdir(exist_ok=True)
    words, corpus, seeds = command(options, target, f"-max_total_time={options.seconds}", f"-artifact_prefix={findings}/{target}-")
    done = subprocess.run([*words, corpus, *seeds], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    row = read(done.stderr)
    row |= {"target": target, "corpus": len(list(corpus.iterdir())), "failed": done.returncode != 0}
    if row["failed"]:
        (findings / f"{target}.log").write_text(done.stderr)
    return row


def read(log):
    """What libFuzzer said last."""
    def last(pattern):
        found = re.findall(pattern, log)
        return int(found[-1]) if found else 0
    return {"executions": last(r"stat::number_of_executed_units:\s*(\d+)") or last(r"#(\d+)\t"), "rate": last(r"stat::average_exec_per_sec:\s*(\d+)"),
            "edges": last(r" cov: (\d+)"), "features": last(r" ft: (\d+)")}


def merge(options, target):
    """Adds inputs to the seeds that reach what they do not, small ones first."""
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    words, corpus, seeds = command(options, target, "-merge=1")
    made = options.build / "merged" / target
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(seeds[0], made)  # a merge adds only what its first folder does not reach
    subprocess.run([*words, made, folder, corpus], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    known = {path.name for path in [*folder.iterdir(), *seeds[0].iterdir()]}
    left = MERGED_BYTES - sum(path.stat().st_size for path in folder.iterdir())
    free = MERGED_FILES - len(list(folder.iterdir()))
    for path in sorted(made.iterdir(), key=lambda one: (one.stat().st_size, one.name)):
        if path.name in known:
            continue
        left -= path.stat().st_size
        free -= 1
        if left < 0 or free < 0:
            break
        shutil.copy(path, folder / path.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--targets", type=lambda text: text.split(","), default=[])
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), default=SOURCE / "build/fuzz")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--merge", action="store_true")
    options = parser.parse_args()
    if options.seconds < 1 or options.jobs < 1:
        parser.error("--seconds and --jobs must be at least 1")
    if not options.no_build:
        if shutil.which("clang++-16") is None:
            print("skipped: clang++-16 is not installed; install the packages clang-16, libclang-rt-16-dev and libomp-16-dev")
            return 77
        build(options)
    targets = targets_of(options)
    print("| target | executions | per second | edges | features | corpus | |\n| --- | --- | --- | --- | --- | --- | --- |")
    failed = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda target: fuzz(options, target), targets):
            print("| {target} | {executions:,} | {rate:,} | {edges:,} | {features:,} | {corpus:,} | {verdict} |".format(
                **row, verdict="failed" if row["failed"] else ""), flush=True)
            failed += [row["target"]] * row["failed"]
    if options.merge:
        for target in targets:
            merge(options, target)
    for target in failed:
        print(f"{target} failed: see {options.build}/findings/{target}.log; the input lies beside it")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
