"""The command: python -m troupe_env serve …"""

import argparse
import ast
import importlib
import os
import signal
import sys
import threading

_EPILOG = """examples:
  python -m troupe_env serve gymnasium HalfCheetah-v5 --endpoint ipc:///tmp/cheetah --count 16
  python -m troupe_env serve gymnasium Pendulum-v1 --make g=9.0 --endpoint tcp://127.0.0.1:5555
  python -m troupe_env serve gymnasium ALE/Breakout-v5 --make frameskip=1 --wrap AtariPreprocessing,noop_max=0 --action-repeat 4 \\
    --endpoint ipc:///tmp/breakout --count 9
  python -m troupe_env serve dm_control cheetah run --endpoint ipc:///tmp/run
  python -m troupe_env serve python my_package.my_module:make_environment --endpoint ipc:///tmp/mine
"""


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _options(pairs):
    options = dict(pair.partition("=")[::2] for pair in pairs)
    return {key: _value(text) for key, text in options.items()}


def _wrapper(text):
    """Returns a function that wraps an environment; `text`: "AtariPreprocessing,noop_max=0" or "my_package.my_module:Wrapper"."""
    name, *pairs = text.split(",")
    module, colon, function = name.rpartition(":")
    try:
        wrap = getattr(importlib.import_module(module if colon else "gymnasium.wrappers"), function)
    except AttributeError:
        where = f"module {module}" if colon else "gymnasium.wrappers"
        raise ValueError(f"--wrap: '{function}' is none of {where}; name one of its classes, or <module>:<class>") from None
    options = _options(pairs)
    return lambda environment: wrap(environment, **options)


def _factory(arguments):
    """Returns (a function that makes one environment, its name for Troupe)."""
    make, name = _bare_factory(arguments)
    wrappers = [_wrapper(text) for text in arguments.wrap]

    def wrapped():
        environment = make()
        for wrap in wrappers:
            environment = wrap(environment)
        return environment

    return wrapped, name


def _bare_factory(arguments):
    options = _options(arguments.make)
    if arguments.library == "gymnasium":
        import gymnasium

        [task] = arguments.what if len(arguments.what) == 1 else [None]
        if task is None:
            raise ValueError("gymnasium takes one id, for example HalfCheetah-v5")
        if task.startswith("ALE/"):
            importlib.import_module("ale_py")  # registers its games
        return lambda: gymnasium.make(task, **options), task
    if arguments.library == "dm_control":
        from dm_control import suite

        if len(arguments.what) != 2:
            raise ValueError("dm_control takes a domain and a task, for example: cheetah run")
        domain, task = arguments.what
        return lambda: suite.load(domain, task, task_kwargs=options or None), f"{domain}_{task}"
    module, colon, function = arguments.what[0].partition(":")
    if len(arguments.what) != 1 or not colon:
        raise ValueError("python takes <module>:<function>, for example my_package.my_module:make_environment")
    make = getattr(importlib.import_module(module), function)
    return lambda: make(**options), None


def _serve(arguments):
    from troupe_env.server import Server

    make, name = _factory(arguments)
    log = (lambda text: None) if arguments.quiet else lambda text: print(text, file=sys.stderr, flush=True)
    with Server(
        make, arguments.endpoint, arguments.count, arguments.name or name, arguments.allow_other_hosts, arguments.silence, log=log,
        action_repeat=arguments.action_repeat, secret_key=arguments.secret_key, allowed_keys=arguments.allowed_keys,
    ) as server:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.stop())
        if arguments.end_with_input:

            def wait_for_end():
                while os.read(0, 4096):  # not sys.stdin: its lock would be held when the interpreter exits
                    pass
                server.stop()

            threading.Thread(target=wait_for_end, daemon=True).start()
        print(f"serving {arguments.count} of {server.spec.name} at {server.endpoint}", flush=True)
        server.serve()
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(prog="troupe_env", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="command")
    serve = commands.add_parser(
        "serve", help="serve environments to Troupe", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    serve.add_argument("library", choices=["gymnasium", "dm_control", "python"])
    serve.add_argument("what", nargs="+", help="an id; a domain and a task; or <module>:<function>")
    serve.add_argument("--endpoint", default="tcp://127.0.0.1:*", help="ipc://<path> or tcp://<host>:<port>; * finds a port")
    serve.add_argument("--count", type=int, default=1, help="environments for all clients together, 1 to 4096")
    serve.add_argument("--name", help="the environment's name in Troupe")
    serve.add_argument("--make", action="append", default=[], metavar="KEY=VALUE", help="an argument of the environment's maker")
    serve.add_argument("--wrap", action="append", default=[], metavar="WRAPPER[,KEY=VALUE...]",
                       help="a wrapper around the environment: a class of gymnasium.wrappers, or <module>:<class>; the first is the innermost")
    serve.add_argument("--action-repeat", type=int, default=1, metavar="N",
                       help="environment steps that Troupe counts for one step, where the environment repeats actions (Atari: 4)")
    serve.add_argument("--silence", type=float, default=10.0, help="seconds without heartbeats, until a client's are free again")
    serve.add_argument("--allow-other-hosts", action="store_true", help="let tcp:// bind more than loopback, and admit every user; nothing is encrypted")
    serve.add_argument("--secret-key", metavar="FILE", help="of `troupe keys new`; encrypts, and lets tcp:// bind more than loopback")
    serve.add_argument("--allowed-keys", metavar="FILE", help="public keys of the clients that are allowed; with --secret-key")
    serve.add_argument("--end-with-input", action="store_true", help="end when standard input ends")
    serve.add_argument("--quiet", action="store_true", help="do not log clients")
    serve.set_defaults(run=_serve)
    arguments = parser.parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, TypeError, ImportError) as mistake:
        print(f"troupe_env: {mistake}", file=sys.stderr)
        return 2
    except Exception as failure:  # the last line names the cause
        print(f"troupe_env: {type(failure).__name__}: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
