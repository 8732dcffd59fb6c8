#!/usr/bin/env python3
"""Types unfinished commands and tabs into the real bash, zsh and fish, on terminals, and reads what the completed commands print.

Usage: completion_test.py TROUPE SHELL   (exit code 77: the shell is not installed)"""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

DEADLINE = 60  # seconds for each answer
MARK = "Q"  # in no word that is completed
END = "; echo en''ded"  # behind each command, so that its end and the next prompt can be waited for
ENDED = "ended\n.*> "
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": "source <(troupe completion bash)",
    "zsh": "unsetopt zle_bracketed_paste; autoload -U compinit; compinit -u -D; source <(troupe completion zsh)",
    "fish": "function fish_prompt; echo -n '> '; end; troupe completion fish | source",
}
# Typed text, where ^ is a tab, and a part of what the completed command then prints.
STORIES = [
    ("troupe resu^--hel^", "Resumes a run from its latest"),
    ("troupe replay inf^--hel^", "troupe replay info"),
    ("troupe train quickst^--set replay.shar^999", "replay.shards=999"),
    ("troupe list agen^--js^", '"name"'),
    ("troupe evaluate runs/a_na^--step 77777", "runs/a_name/2026-11-25T10-00-00"),
    ("troupe train mine.textp^--set seed=-5", "seed=-5"),
]


class Terminal:
    def __init__(self, words, folder, environment):
        self.end, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
        self.process = subprocess.Popen(words, cwd=folder, env=environment, stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(inner)
        self.text = ""

    def send(self, text):
        os.write(self.end, text.encode())

    def read(self, seconds):
        if not select.select([self.end], [], [], seconds)[0]:
            return False
        try:
            got = os.read(self.end, 65536)
        except OSError:  # it ended
            got = b""
        if b"\x1b[c" in got or b"\x1b[0c" in got:  # fish asks what terminal this is
            self.send("\x1b[?1;2c")
        self.text += got.decode("utf-8", "replace")
        return bool(got)

    def wait_for(self, pattern, since=0):
        late = time.monotonic() + DEADLINE
        while not re.search(pattern, plain(self.text[since:]), re.DOTALL):
            if not self.read(max(0, late - time.monotonic())):
                raise SystemExit(f"no {pattern!r} in {DEADLINE} s after:\n{plain(self.text)}")

    def tab(self):
        """What a tab writes has no end that could be waited for, but the shell echoes a letter behind it when it is done, and then takes it back."""
        begin = len(self.text)
        self.send("\t")
        self.send(MARK)
        self.wait_for(MARK, begin)
        self.send("\x7f")

    def close(self):
        self.process.kill()
        self.process.wait()


def plain(text):
    text = re.sub(r"\x1b(\[[0-9;?>=]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])", "", text)
    return re.sub(r"\r|\x08.?|⏎", "", text)


def main(troupe, shell):
    if shutil.which(shell) is None:
        print(f"skipped: there is no {shell}; Debian's package {shell} has it")
        return 77
    script = subprocess.run([troupe, "completion", shell], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder, "runs/a_name/2026-11-25T10-00-00")
        run.mkdir(parents=True)
        (run / "config.textproto").write_text('environment { task: "cartpole_balance" }\n')
        pathlib.Path(folder, "mine.textproto").write_text('environment { task: "cartpole_balance" }\n')
        pathlib.Path(folder, "script").write_text(script)
        subprocess.run([shell, "-n", "script"], cwd=folder, check=True)  # its syntax
        environment = {"PATH": f"{pathlib.Path(troupe).parent}:{os.environ['PATH']}", "HOME": folder, "TERM": "xterm", "LANG": "C.UTF-8", "PS1": "> ",
                       "COLUMNS": "300", "NO_COLOR": "1"}
        terminal = Terminal(SHELLS[shell], folder, environment)
        try:
            terminal.send(f"{LOAD[shell]}{END}\r")
            terminal.wait_for(ENDED)
            for typed, part in STORIES:
                begin = len(terminal.text)
                *completed, rest = typed.split("^")
                for piece in completed:
                    terminal.send(piece)
                    terminal.tab()
                terminal.send(f"{rest} {END}\r")
                terminal.wait_for(re.escape(part) + ".*" + ENDED, begin)
        finally:
            terminal.close()
    print(f"{shell}: {len(STORIES)} commands completed")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
