#!/usr/bin/env python3
"""Does what a page of the guide says, in an empty folder: writes its files, runs its commands and its Python, in their order.

Usage: pages_test.py BUILD SOURCE PAGE

All ```sh blocks are one shell script, so the next block runs in the folder that the previous one entered; ```language FILE writes a file; all
```python blocks are one program. ```sh gpu and ```sh gpus run on hosts with one or several NVIDIA GPUs, ```sh hosts beside two hosts (tests/cluster/hosts.sh), with
the file ssh_config. xdg-open is the browser. A block without a language is not run."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from compiler_cache import through_ccache

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = ["bash", str(HERE.parents[1] / "cluster/hosts.sh"), "-N", "2", "--sshd"]
DEADLINE = 800  # seconds for a page


def gpus():
    return len(list(pathlib.Path("/dev").glob("nvidia[0-9]*")))


def blocks(page):
    """(language, the rest of its first line, body) of each fenced block."""
    return re.findall(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", page, re.M | re.S)


def script_of(page):
    needed = {"gpu": 1, "gpus": 2}
    lines, python = ["set -eux", "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"], ""
    for language, rest, body in blocks(page):
        if language == "sh" and rest == "hosts":
            lines.append(f'if [ -n "${{TROUPE_SSH_CONFIG:-}}" ]; then\ncp "$TROUPE_SSH_CONFIG" ssh_config\n{body}fi')
        elif language == "sh" and (not rest or gpus() >= needed[rest]):
            lines.append(body)
        elif language == "python":
            python += body + "\n"
        elif language and language != "sh":
            if not rest:
                raise SystemExit(f"a block of {language} names no file:\n{body}")
            lines.append(f"cat > {rest} <<'end of the block'\n{body}end of the block\n")
    if python:
        lines.append(f"cat > page.py <<'end of the block'\n{python}end of the block\npython3 page.py\n")
    return "\n".join(lines)


def shell_of(page):
    """Returns the words before a page's script, and what its ```sh hosts blocks use; nothing for a page without any."""
    if "```sh hosts\n" not in page:
        return ["bash", "-c"], ""
    tried = subprocess.run([*HOSTS, "true"], text=True, stdout=subprocess.PIPE, timeout=60)
    if tried.returncode == 0:
        return [*HOSTS, "bash", "-c"], "two network namespaces, by SSH"
    if tried.returncode != 77:
        raise SystemExit(f"{HOSTS} ended with exit code {tried.returncode}")
    return ["bash", "-c"], f"only two nodes of this host: {tried.stdout.strip()}"


def run(words, folder, environment):
    try:
        done = subprocess.run(words, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE)
    except subprocess.TimeoutExpired as late:
        raise SystemExit(f"{(late.stdout or b'').decode()}\nthe page took longer than {DEADLINE} s") from None
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}\nthe page failed with exit code {done.returncode}")


def main(build, source, page):
    text = (source / "experiments/guide" / f"{page}.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder, "home")
        home.mkdir()
        programs = [str(build)]
        environment = {**os.environ, "HOME": str(home), "TROUPE_SOURCE": str(source), "TROUPE_PREFIX": f"{folder}/troupe", "OMP_NUM_THREADS": "1"}
        if "TROUPE_PREFIX" in text:
            for component in ("libraries", "program"):
                subprocess.run(["cmake", "--install", build, "--prefix", f"{folder}/troupe", "--component", component], check=True,
                               stdout=subprocess.DEVNULL)
            programs = [f"{folder}/troupe/bin"]
            environment["CMAKE_GENERATOR"] = "Ninja"
            environment |= through_ccache(folder)
        environment["PATH"] = os.pathsep.join([str(HERE), str(pathlib.Path(sys.executable).parent), *programs, os.environ["PATH"]])
        shell, hosts = shell_of(text)
        run([*shell, script_of(text)], home, environment)
    print(f"{page}: {len(blocks(text))} blocks" + (f", with {hosts}" if hosts else ""))


if __name__ == "__main__":
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:3]), sys.argv[3])
