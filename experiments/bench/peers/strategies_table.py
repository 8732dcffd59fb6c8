#!/usr/bin/env python3
"""Runs one unchanged program (experiments/examples/any_strategy.cpp) under every strategy and backend, by configuration alone.
Usage: strategies_table.py BUILD_FOLDER [STEPS]. Prints a table of losses. Exit code 1: a run fails, or a synchronous one differs from one
device."""
import os
import shutil
import socket
import subprocess
import sys

# Strategy, how its processes are started (None: one process), and whether its gradients equal those of the whole batch.
THREADS = [
    ("one_device", True),
    ("mirrored replicas=2", True),
    ("mirrored replicas=4", True),
    ("central_storage replicas=2", True),
    ("parameter_server replicas=2", False),
    ("parameter_server replicas=4 max_staleness=8 staleness_rate=inverse_plus_one", False),
    ("sync_groups replicas=4 sync_groups=2", False),
    ("backup_workers replicas=4 backup_workers=1", False),
    ("local_sgd replicas=2 local_steps=8", False),
]
PROCESSES = [
    ("multi_worker backend=shared_memory", 2, "variables", True),
    ("multi_worker backend=shared_memory", 4, "variables", True),
    ("multi_worker backend=tcp", 2, "variables", True),
    ("multi_worker backend=tcp", 4, "tf_config", True),
    ("multi_worker backend=hierarchical", 4, "variables", True),
    ("multi_worker replicas=2 backend=tcp", 2, "variables", True),  # threads within a process, TCP between processes
    ("multi_worker backend=mpi", 2, "mpi", True),
    ("multi_worker backend=mpi", 4, "mpi", True),
    ("central_storage", 2, "variables", True),
    ("parameter_server", 3, "variables", False),
    ("sync_groups sync_groups=2", 4, "variables", False),
    ("backup_workers backup_workers=1", 4, "variables", False),
    ("local_sgd local_steps=8 backend=shared_memory", 2, "variables", False),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(rank, size, port, how):
    env = dict(os.environ, OMP_NUM_THREADS="1")
    if how == "variables":
        env.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(port))
    elif how == "tf_config":
        workers = ",".join(f'"127.0.0.1:{port + i}"' for i in range(size))
        env["TF_CONFIG"] = f'{{"cluster":{{"worker":[{workers}]}},"task":{{"type":"worker","index":{rank}}}}}'
    return env


def run(program, strategy, steps, size=1, how=None):
    """Returns the output of the chief."""
    port = free_port()
    if how == "mpi":
        env = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        commands = [(["mpirun", "--oversubscribe", "-np", str(size), program, strategy, steps], env)]
    else:
        commands = [([program, strategy, steps], environment(rank, size, port, how)) for rank in range(size)]
    started = [subprocess.Popen(c, env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c, e in commands]
    out, failed = "", ""
    for process in started:
        try:
            mine, errors = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            mine, errors = "", "300 s went by"
        out += mine
        if process.returncode != 0:
            failed += errors.strip().splitlines()[-1] if errors.strip() else f"exit code {process.returncode}"
    if failed:
        raise RuntimeError(failed)
    return float(out.strip().rsplit(" ", 1)[1])


def main():
    program = os.path.join(sys.argv[1], "experiments", "any_strategy")
    steps = sys.argv[2] if len(sys.argv) > 2 else "200"
    runs = [(s, 1, None, same) for s, same in THREADS] + PROCESSES
    print("| strategy | processes | started by | loss |\n| --- | --- | --- | --- |")
    bad, alone = 0, None
    for strategy, size, how, same in runs:
        if how == "mpi" and not shutil.which("mpirun"):
            print(f"| `{strategy}` | {size} | mpirun | skipped: there is no mpirun |")
            continue
        try:
            loss = run(program, strategy, steps, size, how)
            alone = loss if alone is None else alone
            note = ""
            if same and abs(loss - alone) > 1e-6 * abs(alone):
                bad, note = bad + 1, " differs from one device"
            print(f"| `{strategy}` | {size} | {how or 'one process'} | {loss:.7f}{note} |", flush=True)
        except (RuntimeError, ValueError, IndexError) as error:
            bad += 1
            print(f"| `{strategy}` | {size} | {how or 'one process'} | failed: {error} |", flush=True)
    return 1 if bad else 0


sys.exit(main())
