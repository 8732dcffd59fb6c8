#!/usr/bin/python3
"""Runs moto, which serves the interfaces of AWS, on free ports of the loopback interface, for tests: S3, the
Security Token Service and EC2's instance metadata.

Usage: moto_server.py FOLDER VENV

Gets moto from PyPI into the virtual environment VENV. Prints "skipped: …" and ends with exit code 77 where it cannot be had; else prints
"ready http://127.0.0.1:PORT https://127.0.0.1:PORT" and serves until it is killed or its parent ends; the certificate is FOLDER/certificate.pem.
S3 checks signatures and tokens: the bucket "bucket" belongs to the role arn:aws:iam::123456789012:role/trainer, which trusts every web identity.
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1
PACKAGES = ["moto[iam,s3,server]==5.2.5"]
POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
TRUST = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity", "Principal": {"Federated": "*"}}]}'


def serve(folder):
    import boto3
    from moto import settings
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    files = [str(folder / name) for name in ("certificate.pem", "key.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    app = DomainDispatcherApplication(create_backend_app)

    def unsigned(environ, start_response):
        """The Security Token Service asks for no signature of a web identity, which moto does not know: it counts as an action before IAM begins."""
        settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
        try:
            return app(environ, start_response)
        finally:
            settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0

    servers = [make_server("127.0.0.1", 0, app, threaded=True), make_server("127.0.0.1", 0, unsigned, threaded=True, ssl_context=tuple(files))]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    plain, secured = (f"http{'s' if secured else ''}://127.0.0.1:{server.server_port}" for secured, server in enumerate(servers))

    def client(service):
        return boto3.client(service, endpoint_url=plain, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")

    client("s3").create_bucket(Bucket="bucket")
    client("iam").create_role(RoleName="trainer", AssumeRolePolicyDocument=TRUST)
    client("iam").put_role_policy(RoleName="trainer", PolicyName="all", PolicyDocument=POLICY)
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0.0
    print(f"ready {plain} {secured}", flush=True)
    threading.Event().wait()


def main():
    folder = pathlib.Path(sys.argv[1]).absolute()
    if len(sys.argv) > 2:  # with the system's Python
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
        from python_packages import python_with
        python = python_with(sys.argv[2], PACKAGES)
        os.execv(python, [str(python), __file__, str(folder)])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    errors = os.open(folder / "errors.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(errors, 2)
    serve(folder)


if __name__ == "__main__":
    main()
