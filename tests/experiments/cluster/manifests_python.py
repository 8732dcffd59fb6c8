"""Validates what `troupe launch --manifests` writes for Kubernetes against Kubernetes' own schemas, and the batch script by bash.

Usage: manifests_python.py <folder for the virtual environment> <troupe> <folder of clusters>; exit code 77: skipped.
The schemas are those that kubernetes-validate ships; MPIJobs and RayJobs are custom resources, so only their pod templates are validated, as Pods.
"""

import copy
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from python_packages import python_with

CUSTOM = ("MPIJob", "RayJob")  # of operators
VERSIONS = ["1.29", "1.33", "1.37"]  # of Kubernetes


def inside_environment(venv):
    """Runs this script again in a virtual environment that has the package."""
    return subprocess.run([python_with(venv, ["kubernetes-validate==1.37.0"]), *sys.argv, "inside"]).returncode


def valid(value, version):
    import kubernetes_validate

    kubernetes_validate.validate(value, version, strict=True)


def pods(value):
    """Every pod template below a value, as a Pod."""
    if isinstance(value, dict):
        if "template" in value and "spec" in value["template"]:
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **value["template"]["metadata"]}, "spec": value["template"]["spec"]}
        for item in value.values():
            yield from pods(item)
    elif isinstance(value, list):
        for item in value:
            yield from pods(item)


def check_pod(pod):
    """What a careful cluster demands of a pod (the Pod Security Standard `restricted`), and what we promise."""
    spec = pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    assert not spec["automountServiceAccountToken"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        security = container["securityContext"]
        assert not security["allowPrivilegeEscalation"] and security["capabilities"]["drop"] == ["ALL"] and security["readOnlyRootFilesystem"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert {"cpu", "memory"} <= set(container["resources"]["limits"])
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, "a mount without its volume"
    assert "livenessProbe" in spec["containers"][0]


def check_references(folder, documents):
    """Names that one manifest uses are made by another."""
    import yaml

    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    for name in kustomization["resources"]:
        assert (folder / name).is_file(), name
    made = set()
    for generator in kustomization["configMapGenerator"]:
        made.add(generator["name"])
        for name in generator["files"]:
            assert (folder / name).is_file(), name
    for document in documents:
        for pod in pods(document):
            for volume in pod["spec"]["volumes"]:
                if "configMap" in volume:
                    assert volume["configMap"]["name"] in made
    services = {d["metadata"]["name"] for d in documents if d["kind"] == "Service"}
    for pod in (pod for d in documents if d["kind"] == "Job" for pod in pods(d)):
        assert pod["spec"]["subdomain"] in services, "pods find each other by a service that is there"


def check_kubernetes(folder):
    import yaml

    for place, kinds in ((folder, {"Job", "Service", "PodDisruptionBudget", "NetworkPolicy"}), (folder / "mpi", {"MPIJob"}), (folder / "ray", {"RayJob"})):
        names = [path for path in sorted(place.glob("*.yaml")) if path.name != "kustomization.yaml"]
        documents = [yaml.safe_load(path.read_text()) for path in names]
        assert {document["kind"] for document in documents} == kinds
        check_references(place, documents)
        count = 0
        for document in documents:
            for pod in pods(document):
                check_pod(pod)
                for version in VERSIONS:
                    valid(pod, version)
                count += 1
            if document["kind"] not in CUSTOM:
                for version in VERSIONS:
                    valid(document, version)
        assert count >= 2
    return names


def check_kubectl(folder):
    """Where there is a kubectl, it makes of each folder what `kubectl apply -k` would send."""
    import yaml

    if not shutil.which("kubectl"):
        return
    folders = {folder: {"Job", "Service", "PodDisruptionBudget", "NetworkPolicy"}, folder / "mpi": {"MPIJob"}, folder / "ray": {"RayJob"}}
    for place, kinds in folders.items():
        made = subprocess.run(["kubectl", "kustomize", place], check=True, capture_output=True, text=True).stdout
        documents = list(yaml.safe_load_all(made))
        assert {document["kind"] for document in documents} == {"ConfigMap", *kinds}
        for document in documents:
            assert document["metadata"]["namespace"] == "troupe"
            if document["kind"] not in CUSTOM:
                valid(document, VERSIONS[-1])
            if document["kind"] == "ConfigMap":
                assert set(document["data"]) == {"cluster.textproto", "experiment.textproto"}


def check_ray_job(folder):
    """Where TROUPE_KUBERAY_CRD names KubeRay's definition of RayJobs (ray.io_rayjobs.yaml), the RayJob has what that knows, and nothing else."""
    import jsonschema
    import yaml

    if not os.environ.get("TROUPE_KUBERAY_CRD"):
        return
    definition = yaml.safe_load(pathlib.Path(os.environ["TROUPE_KUBERAY_CRD"]).read_text())
    schema = next(version for version in definition["spec"]["versions"] if version["name"] == "v1")["schema"]["openAPIV3Schema"]

    def make_strict(part):
        if isinstance(part, dict):
            if part.get("x-kubernetes-int-or-string"):
                part.pop("type", None)
            if part.get("type") == "object" and part.get("properties") and not part.get("x-kubernetes-preserve-unknown-fields"):
                part.setdefault("additionalProperties", False)
        for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            make_strict(item)

    make_strict(schema["properties"]["spec"])
    job = yaml.safe_load((folder / "ray" / "rayjob.yaml").read_text())
    jsonschema.validate(job, schema)
    job["spec"]["backofLimit"] = 1
    try:
        jsonschema.validate(job, schema)
    except jsonschema.ValidationError:
        return
    raise AssertionError("a bad RayJob is taken for a good one")


def check_that_it_can_fail(folder):
    """A manifest with a key in the wrong place, of the wrong type, or too many is refused."""
    import kubernetes_validate
    import yaml

    good = yaml.safe_load((folder / "head.yaml").read_text())
    for change in (
        lambda d: d["spec"].update(completion="x"),
        lambda d: d["spec"].update(completions="three"),
        lambda d: d["spec"]["template"]["spec"]["containers"][0].pop("name"),
        lambda d: d["spec"]["template"]["spec"]["containers"][0].update(livenesProbe={}),
    ):
        bad = copy.deepcopy(good)
        change(bad)
        try:
            valid(bad, VERSIONS[-1])
        except kubernetes_validate.ValidationError:
            continue
        raise AssertionError("a bad manifest is taken for a good one")


def check_policy_server(path):
    """The manifest for `troupe serve policy`."""
    import yaml

    documents = list(yaml.safe_load_all(path.read_text()))
    assert [document["kind"] for document in documents] == ["Deployment", "Service", "PodMonitor", "HorizontalPodAutoscaler"]
    deployment, service, monitor, _ = documents
    for document in documents:
        for version in VERSIONS if document is not monitor else ():
            valid(document, version)
    for pod in pods(deployment):
        check_pod(pod)
        assert not any(name.startswith("prometheus.io/") for name in pod["metadata"].get("annotations", {})), "such a scrape has no token"
        secrets = {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume}
    assert service["spec"]["sessionAffinity"] == "ClientIP", "a session is in one replica"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    endpoint, = monitor["spec"]["podMetricsEndpoints"]
    assert {endpoint["authorization"]["credentials"]["name"], endpoint["tlsConfig"]["ca"]["secret"]["name"]} == secrets


def main(troupe, clusters):
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        secret = "QUFBQUFBc2VjcmV0"
        (place / "keys").mkdir(mode=0o700)
        (place / "keys" / "node.key").write_text(secret)
        text = (clusters / "kubernetes.textproto").read_text()
        (place / "pools.textproto").write_text(text)
        one = "".join(line + "\n" for line in text.splitlines() if 'name: "gpu"' not in line and 'name: "learner"' not in line)
        (place / "alike.textproto").write_text(one)
        for cluster in ("pools", "alike"):
            out = place / cluster
            subprocess.run([troupe, "launch", place / f"{cluster}.textproto", "quickstart", "--manifests", out], check=True, capture_output=True)
            check_ray_job(out)
            if cluster == "alike":
                check_kubernetes(out)
                check_that_it_can_fail(out)
                check_kubectl(out)
            else:
                import yaml

                for path in out.glob("*.yaml"):
                    document = yaml.safe_load(path.read_text())
                    if document["kind"] != "Kustomization":
                        valid(document, VERSIONS[-1])
            assert not any(secret in path.read_text() for path in out.rglob("*") if path.is_file()), "a key is in a manifest"
        shell = place / "slurm"
        subprocess.run([troupe, "launch", clusters / "slurm.textproto", "quickstart", "--manifests", shell], check=True, capture_output=True)
        subprocess.run(["bash", "-n", shell / "job.sh"], check=True)
    check_policy_server(clusters.parent / "serving" / "kubernetes.yaml")
    print("manifests and script are valid")
    return 0


if __name__ == "__main__":
    if sys.argv[-1] != "inside":
        sys.exit(inside_environment(pathlib.Path(sys.argv[1])))
    sys.exit(main(sys.argv[2], pathlib.Path(sys.argv[3])))
