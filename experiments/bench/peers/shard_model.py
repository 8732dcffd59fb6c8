#!/usr/bin/env python3
"""What many replay shards on a network could do, calculated from what one was measured to do.

    troupe bench replay --json > shards.jsonl
    experiments/bench/peers/shard_model.py shards.jsonl [--shards 64] [--gigabits 25] [--learners 1,8,64] [--cores 2]

Each shard is a host of its own, each learner, too; all have one network card of --gigabits in each direction. Assumptions:
 1. A message needs its measured bytes and 5 % for TCP, IP and Ethernet (1,448 of 1,538 bytes on the line are payload) and ZeroMQ's frames.
 2. A shard serves as many items per second of its processor as was measured (ZeroMQ over loopback, which costs more than a card that
    checks and cuts packets itself); its server has one thread that gathers and one of ZeroMQ: --cores of the host's are its own.
 3. Items and requests are spread evenly: rendezvous hashing over many writers, and samplers that ask in proportion to the sizes.
 4. A learner takes in whatever its card lets through; nothing in between is slower than the cards (no oversubscribed switch).
 5. A round trip (0.1 ms) is hidden by requests that are asked for ahead.
The bottleneck is whichever of the three comes first: the shards' processors, the shards' cards, the learners' cards."""
import argparse, json

WIRE = 1538 / 1448


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", help="lines of JSON of `troupe bench replay --json`")
    parser.add_argument("--shards", type=int, default=64), parser.add_argument("--gigabits", type=float, default=25)
    parser.add_argument("--learners", default="1,8,64", help="hosts that sample, or that insert")
    parser.add_argument("--cores", type=float, default=1, help="of each shard's host that work for it")
    options = parser.parse_args()
    size, speed = {}, {}
    with open(options.measured, encoding="utf-8") as lines:
        for line in lines:
            figure = json.loads(line) if line.startswith("{") else {"bench": ""}
            if figure["bench"] != "replay" or "shards" not in figure["config"] and "message bytes" not in figure["metric"]:
                continue
            kind, what = figure["metric"].split()[:2]
            if figure["unit"] == "bytes/item":
                size[kind, what.rstrip(",")] = figure["value"]
            elif figure["unit"] == "items/s of the shards' CPU" and figure["config"]["shards"] == "1" and "ZeroMQ" in figure["config"]["transport"]:
                speed[kind, what.rstrip(",")] = figure["value"]
    card = options.gigabits * 1e9 / 8 / WIRE
    print(f"{options.shards} shards, cards of {options.gigabits:g} Gbit/s ({card / 1e9:.2f} GB/s of messages), {options.cores:g} core(s) a shard\n")
    print("| items | bytes each | other hosts | 1 shard, items/s | all shards, items/s | GB/s | what holds it back |\n| --- | --- | --- | --- | --- | --- | --- |")
    for (kind, what), each in size.items():
        for others in map(int, options.learners.split(",")):
            def total(shards):
                return min((shards * speed[kind, what] * options.cores, "the shards' processors"), (shards * card / each, "the shards' cards"),
                           (others * card / each, "the other hosts' cards"))
            (one, _), (rate, why) = total(1), total(options.shards)
            print(f"| {kind} {what} | {each:,.0f} | {others} | {one:,.0f} | {rate:,.0f} | {rate * each / 1e9:.1f} | {why} |")


main()
