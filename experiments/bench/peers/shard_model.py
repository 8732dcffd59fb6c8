#!/usr/bin/env python3
"""Estimates the throughput of many replay shards on a network from measurements of one shard.

    troupe bench replay --json > shards.jsonl
    experiments/bench/peers/shard_model.py shards.jsonl [--shards 64] [--gigabits 25] [--learners 1,8,64] [--cores 2]

Each shard and each learner has its own host; every host has one network card with --gigabits in each direction. Assumptions:
 1. A message takes its measured bytes plus 5 % for TCP, IP and Ethernet (1,448 of 1,538 bytes on the line are payload) and ZeroMQ's frames.
 2. A shard serves as many items per processor second as measured (ZeroMQ over loopback, which costs more than a card with checksum and
    segmentation offload). Its server has one thread that gathers and one of ZeroMQ: it has --cores cores of its host.
 3. Items and requests are spread evenly: rendezvous hashing over many writers, and samplers that request in proportion to the sizes.
 4. A learner accepts everything that its card receives; nothing in between is slower than the cards (no oversubscribed switch).
 5. Requests in advance hide the round trip (0.1 ms).
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
