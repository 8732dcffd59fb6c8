"""Runs the Jobs of a folder of manifests on the hosts of hosts.sh, one pod on each. pods_test.sh calls it."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

TROUPE, FOLDER = sys.argv[1:]
PATIENCE = 120.0  # seconds for anything that is waited for here
CLUSTER = """name: "pods"
node { name: "node" count: 2 cores: 1 memory_bytes: 4294967296 }
kubernetes { namespace: "lab" image: "example.org/troupe:1" storage_claim: "runs" }
head { memory_bytes: 1073741824 }
keys: "keys"
runs: "/runs"
oversubscribe: true
pin: false
supervision { lost_seconds: 10 join_seconds: 60 grace_seconds: 60 }
"""
EXPERIMENT = """name: "pods"
environment { task: "cartpole_balance" action_repeat: 4 }
replay { shards: 2 minimum_items: 300 samples_per_insert: 8 }
d4pg { policy_layers: [32, 32] critic_layers: [32, 32] batch_size: 32 }
learner { replicas: 2 backend: TCP }
actors { environment: 2 random_steps: 300 }
supervision { lost_seconds: 30 }
evaluation { period: 0 final_episodes: 1 video: false }
checkpoint { minutes: 0.1 keep: 1 }
stop { environment_steps: 200000 }
"""
# What the image has at these paths is elsewhere here. The pod's folders may be below /tmp, so they are bound before /tmp is covered.
ENTER = r"""set -euo pipefail
mount --make-rprivate /
mkdir -p /run/pod/program /run/pod/files
mount --bind "$PROGRAM" /run/pod/program
at=0
for pair in $MOUNTS; do
  mkdir -p "/run/pod/$at"
  mount --bind "${pair%%=*}" "/run/pod/$at"
  at=$((at + 1))
done
at=0
for pair in $MOUNTS; do
  to=${pair#*=}
  case $to in /keys | /runs | /etc/troupe) [ -d "$to" ] || mkdir "$to" ;; esac
  mount --move "/run/pod/$at" "$to"
  at=$((at + 1))
done
mkdir -p "$PROGRAM"
mount --move /run/pod/program "$PROGRAM"
for to in $READ_ONLY; do mount -o remount,bind,ro "$to"; done
hostname "$POD"
mount -t proc proc /proc
cd /
exec setpriv --reuid "$POD_USER" --regid "$POD_GROUP" --groups "$POD_GROUP" --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all \
  env -i "$@"
"""


def fail(what):
    print(what)
    for path in glob.glob(f"{FOLDER}/*.out") + glob.glob(f"{FOLDER}/runs/pods/*/*.log"):
        print(f"==> {path}")
        print("".join(open(path, errors="replace").readlines()[-25:]))
    sys.exit(1)


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            fail(f"never saw {what}")
        time.sleep(0.1)


class Pod:
    """One container of an indexed Job's pod, on a host."""

    def __init__(self, job, index, host, volumes, folder):
        self.job, self.index, self.host = job["metadata"]["name"], index, host
        self.name = f"{self.job}-{index}"
        self.spec = job["spec"]["template"]["spec"]
        self.container = self.spec["containers"][0]
        self.volumes, self.folder = volumes, folder
        self.starts, self.process = 0, None

    def _value(self, entry, known):
        if "value" in entry:
            return re.sub(r"\$\((\w+)\)", lambda found: known[found.group(1)], entry["value"])
        field = entry["valueFrom"]["fieldRef"]["fieldPath"]
        return {"status.podIP": f"10.77.0.{self.host + 1}",
                "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(self.index)}[field]

    def environment(self):
        """The kubelet expands $(NAME) of those that come before."""
        known = {"PATH": f"{os.path.dirname(TROUPE)}:/usr/bin:/bin", "HOSTNAME": self.name}
        for entry in self.container["env"]:
            known[entry["name"]] = self._value(entry, known)
        return known

    def mounts(self):
        """Of each mount its folder here and its place in the pod; what a pod only reads."""
        pairs, read_only = [], []
        sources = {volume["name"]: volume for volume in self.spec["volumes"]}
        for mount in sorted(self.container["volumeMounts"], key=lambda one: len(one["mountPath"])):
            volume = sources[mount["name"]]
            own = f"{self.folder}/{self.name}/{self.starts}/{mount['name']}"
            if "emptyDir" in volume:
                os.makedirs(own)
                os.chmod(own, 0o1777)
            else:
                own = self.volumes[next(key for key in volume if key != "name")]
            pairs.append(f"{own}={mount['mountPath']}")
            if mount.get("readOnly"):
                read_only.append(mount["mountPath"])
        return pairs, read_only

    def start(self):
        pairs, read_only = self.mounts()
        if self.container["securityContext"]["readOnlyRootFilesystem"]:
            read_only.append("/")
        context = self.spec["securityContext"]
        inside = {"PROGRAM": program(), "MOUNTS": " ".join(pairs), "READ_ONLY": " ".join(read_only), "POD": self.name,
                  "POD_USER": str(context["runAsUser"]), "POD_GROUP": str(context["runAsGroup"]), "PATH": os.environ["PATH"]}
        host = open(f"/run/hosts/host{self.host}.pid").read().strip()
        words = ["nsenter", "-t", host, "-n", "-u", "-i", "-m", "--", "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child=KILL",
                 "bash", "-c", ENTER, "pod"]
        words += [f"{key}={value}" for key, value in self.environment().items()] + self.container["command"]
        self.starts += 1
        with open(f"{FOLDER}/{self.name}.out", "a") as out:
            self.process = subprocess.Popen(words, env=inside, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def one(self):
        """Its process 1, as it is numbered here."""
        below = self.process.pid
        while True:
            children = open(f"/proc/{below}/task/{below}/children").read().split()
            if not children:
                return None
            below = int(children[0])
            if os.readlink(f"/proc/{below}/ns/pid") != os.readlink("/proc/self/ns/pid"):
                return below

    def signal(self, number):
        os.kill(self.one(), number)

    def probe(self, command):
        """Exit code of an exec probe."""
        return subprocess.run(["nsenter", "-t", str(self.one()), "-m", "-p", "--", *command], stdin=subprocess.DEVNULL).returncode

    def ended(self):
        return self.process.poll()


def prepare():
    """What `kubectl create secret` and `kubectl apply -k` would have made."""
    for name, text in (("cluster.textproto", CLUSTER), ("experiment.textproto", EXPERIMENT)):
        with open(f"{FOLDER}/{name}", "w") as file:
            file.write(text)
    subprocess.run([TROUPE, "keys", "cluster", f"{FOLDER}/keys"], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([TROUPE, "launch", "cluster.textproto", "experiment.textproto", "--manifests", "deploy"], cwd=FOLDER,
                          capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"no manifests: {done.stderr}")
    deploy = f"{FOLDER}/deploy"
    kustomization = yaml.safe_load(open(f"{deploy}/kustomization.yaml"))
    objects = [yaml.safe_load(open(f"{deploy}/{name}")) for name in kustomization["resources"]]
    secret = f"{FOLDER}/secret"
    os.mkdir(secret)
    files = re.findall(r"--from-file='([^']*)'", done.stdout + done.stderr)
    if len(files) < 3 or any("ca.key" in name for name in files):
        fail(f"the Secret would be made of {files}")
    mode = next(volume["secret"]["defaultMode"] for volume in objects[0]["spec"]["template"]["spec"]["volumes"] if "secret" in volume) \
        if objects[0]["kind"] == "Job" else 0o440
    for name in files:
        to = shutil.copy(f"{FOLDER}/{name}", secret)
        os.chown(to, 0, 1000)
        os.chmod(to, mode)
    files = f"{FOLDER}/configmap"
    os.mkdir(files)
    for name in kustomization["configMapGenerator"][0]["files"]:
        shutil.copy(f"{deploy}/{name}", files)
    runs = f"{FOLDER}/runs"
    os.mkdir(runs)
    os.chown(runs, 1000, 1000)
    return objects, {"secret": secret, "configMap": files, "persistentVolumeClaim": runs}


def program():
    """The folder of the program and its own libraries, which the image has under /opt."""
    listed = subprocess.run(["ldd", TROUPE], check=True, capture_output=True, text=True).stdout
    own = [path for path in re.findall(r"=> (/\S+)", listed) if not path.startswith(("/lib", "/usr/lib"))]
    return os.path.commonpath([os.path.dirname(TROUPE), *map(os.path.dirname, own)])


def counter(name):
    found = sorted(glob.glob(f"{FOLDER}/runs/pods/*/metrics.csv"))
    if not found:
        return 0
    rows = [line.rstrip().split(",") for line in open(found[-1])]
    return int(float(rows[-1][rows[0].index(name)] or 0)) if len(rows) > 1 and len(rows[-1]) == len(rows[0]) else 0


def main():
    objects, volumes = prepare()
    jobs = [one for one in objects if one["kind"] == "Job"]
    pods = []
    for job in sorted(jobs, key=lambda one: "head" not in one["metadata"]["name"]):
        for index in range(job["spec"]["completions"]):
            pods.append(Pod(job, index, len(pods), volumes, FOLDER))
    head, nodes = pods[0], pods[1:]
    service = next(one for one in objects if one["kind"] == "Service")
    if len(pods) != 3 or service["spec"]["clusterIP"] != "None" or not service["spec"]["publishNotReadyAddresses"]:
        fail(f"{len(pods)} pods, and a Service {service['spec']}")
    with open("/run/hosts/names", "a") as names:  # those of the pods, as the cluster's DNS has them
        for pod in pods:
            names.write(f"10.77.0.{pod.host + 1} {pod.name}.{pod.spec['subdomain']}.{pod.container.get('namespace', 'lab')}.svc\n")
    for pod in nodes:  # nobody promises that the head is the first
        pod.start()
    head.start()

    port = head.container["startupProbe"]["tcpSocket"]["port"]
    until("the head's port", lambda: subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/10.77.0.1/{port}"], stderr=subprocess.DEVNULL).returncode == 0)
    until("updates", lambda: counter("updates") > 300 or any(pod.ended() is not None for pod in pods))
    for pod in pods:
        if pod.ended() is not None:
            fail(f"{pod.name} ended with {pod.ended()}")
        if pod.probe(pod.container["livenessProbe"]["exec"]["command"]) != 0:
            fail(f"the liveness probe of {pod.name} fails")

    # A node is killed: its Job starts another pod of the same index.
    nodes[1].signal(signal.SIGKILL)
    until("its end", lambda: nodes[1].ended() is not None)
    nodes[1].start()
    before = counter("updates")
    until("updates after the death of a node", lambda: counter("updates") > before + 300 or head.ended() is not None)

    # The head's pod is killed: its Job starts another, which takes over the nodes and their processes.
    logged = lambda text: text in open(glob.glob(f"{FOLDER}/runs/pods/*/log.txt")[-1]).read()
    until("a checkpoint", lambda: glob.glob(f"{FOLDER}/runs/pods/*/checkpoints/*/manifest.json") or head.ended() is not None)
    before = counter("updates")
    head.signal(signal.SIGKILL)
    until("its end", lambda: head.ended() is not None)
    head.start()
    until("the takeover", lambda: logged("took over 7 processes of 7") or head.ended() is not None)
    until("updates after it", lambda: counter("updates") > before + 300 or head.ended() is not None)

    # The head is evicted: it gets its grace period, ends with an exit code other than 0, and the next one continues.
    head.signal(signal.SIGTERM)
    until("its end", lambda: head.ended() is not None)
    if head.ended() != 75:
        fail(f"the evicted head ended with {head.ended()}, not 75")
    checkpoints = glob.glob(f"{FOLDER}/runs/pods/*/checkpoints/*/manifest.json")
    if len(checkpoints) != 1:
        fail(f"{len(checkpoints)} checkpoints of the evicted head")
    head.start()
    for pod in pods:
        until(f"the end of {pod.name}", lambda: pod.ended() is not None)
        if pod.ended() != 0:
            fail(f"{pod.name} ended with {pod.ended()}")
    runs = os.listdir(f"{FOLDER}/runs/pods")
    if len(runs) != 1 or counter("environment_steps") < 200000:
        fail(f"runs {runs}, {counter('environment_steps')} steps")
    if "resumed at" not in open(f"{FOLDER}/runs/pods/{runs[0]}/log.txt").read():
        fail("the second head did not go on with the run")
    print("three pods")


main()
