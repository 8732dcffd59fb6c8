"""Runs ``troupe serve environment`` while a Python environment needs it."""

import pathlib
import select
import shutil
import subprocess
import tempfile
import time


class Program:
    """A process ``troupe serve environment`` with `count` environments of `task`, which only this user can reach. `program` is the path of troupe
    (or its name in the PATH); `arguments` are further flags, for example ["--pixels"]. The process ends with close(), and with this process
    however that ends, because its standard input is closed then."""

    def __init__(self, task, count=1, program="troupe", arguments=(), deadline=60.0):
        self._folder = tempfile.mkdtemp(prefix="troupe-")  # only its owner can read it
        self.endpoint = f"ipc://{self._folder}/serve"
        found = shutil.which(program)
        if found is None:
            self.close()
            raise FileNotFoundError(
                f"program '{program}' is not in the PATH; give the path of a built troupe, for example program='build/release/troupe', or an "
                "endpoint where one serves already"
            )
        command = [found, "serve", "environment", task, "--endpoint", self.endpoint, "--count", str(count), "--end-with-input", *arguments]
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        line = self._first_line(time.monotonic() + deadline)
        if line is None or not line.startswith(b"serving "):
            how = f"did not start within {deadline} s" if line is None else "ended before it served"
            self.close()
            self._errors.seek(0)
            text = self._errors.read().decode("utf-8", "replace").strip()
            raise RuntimeError(f"{' '.join(command)} {how}: {text or 'no message'}")

    def _first_line(self, deadline):
        """Empty if the program ended first; None after the deadline."""
        while time.monotonic() < deadline:
            if select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return self._process.stdout.readline()
        return None

    def close(self):
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process is not None:
            process.stdout.close()
            process.stdin.close()
        shutil.rmtree(pathlib.Path(self._folder), ignore_errors=True)


def connect(task, endpoint, count, program, arguments, options):
    """Returns (client, program or None), for either a task, which a new program then serves, or an endpoint."""
    from troupe_env.client import Client

    if (task is None) == (endpoint is None):
        raise ValueError("give either a task, for example 'cheetah_run', or the endpoint of a server")
    if endpoint is not None:
        return Client(endpoint, count, **options), None
    server = Program(task, count, program, arguments)
    try:
        return Client(server.endpoint, count, **options), server
    except BaseException:
        server.close()
        raise
