"""Checks exported policies of every agent with the real onnx and ONNX Runtime, and their headers with the compilers of this machine: with random
parameters (export_cases), and as trained and exported by the program.

Usage: export_checks.py <export_cases> <check_header.cpp> <examples> <troupe>
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file

ALLOWED = 1e-5
OBSERVATIONS = "10000"
TRAINED = {  # policies that the program trains for a few seconds: from states, from pictures, with a memory
    "trained_state": """environment { task: "cartpole_swingup" } replay { minimum_items: 500 samples_per_insert: 32 } actors { random_steps: 500 }
        d4pg { policy_layers: [64, 64] critic_layers: [64, 64] batch_size: 64 normalise_observations: true }""",
    "trained_pixels": """environment { task: "cartpole_balance" pixels { height: 40 width: 44 renderer: CASTER } frame_stack: 2 }
        replay { minimum_items: 500 samples_per_insert: 4 } actors { random_steps: 500 }
        d4pg { encoder: "stride4" encoder_channels: 6 feature_size: 20 policy_layers: [32] critic_layers: [32] batch_size: 16 }""",
    "trained_memory": """environment { task: "CartPole-v1" } ppo { layers: [64] lstm: 32 rollout: 32 }""",
}
FLAGS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]


def check_onnx(folder, contract):
    model = onnx.load(folder / "policy.onnx")
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(metadata["contract"]) == contract
    assert metadata["action_names"].split(",") == [action["name"] for action in contract["actions"]]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "policy.onnx", options, providers=["CPUExecutionProvider"])
    samples = load_file(folder / "samples.safetensors")
    rows = len(samples["first"])
    arrays, column = {}, 0
    for number, array in enumerate(contract["observations"]):
        if number == 0:
            shape = [array["shape"][0] * contract["history"], *array["shape"][1:]]
            arrays[array["name"]] = samples["observation"].reshape(rows, *shape)
        else:
            size = int(numpy.prod(array["shape"]))
            arrays[array["name"]] = samples["vectors"][:, column:column + size]
            column += size
    if contract["state_size"] == 0:
        actions = session.run(["action"], arrays)[0]
    else:
        memory, actions = None, []
        for row in range(rows):
            if samples["first"][row]:
                memory = numpy.zeros((1, contract["state_size"]), numpy.float32)
            inputs = {name: array[row:row + 1] for name, array in arrays.items()}
            action, memory = session.run(["action", "next_memory"], {**inputs, "memory": memory})
            actions.append(action[0])
        actions = numpy.stack(actions)
    difference = float(numpy.abs(actions - samples["action"]).max())
    assert difference <= ALLOWED, (folder.name, difference)
    for number, action in enumerate(contract["actions"]):
        taken = samples["action"][:, number]
        if "choices" in action:
            assert set(taken) <= set(range(action["choices"])) and (rows < 1000 or len(set(taken)) > 1), (folder.name, set(taken))
        elif "minimum" in action:
            assert taken.min() >= action["minimum"] - 1e-6 and taken.max() <= action["maximum"] + 1e-6
            assert taken.std() > 1e-3, (folder.name, "its actions do not depend on what it observes")
    return rows, difference


def check_header(folder, compiler, check_source, allowed=ALLOWED):
    program = folder / f"parity_{pathlib.Path(compiler).name}"
    name = folder.name
    subprocess.run([compiler, *FLAGS, "-O2", "-march=native", f"-DPOLICY={name}", "-o", program, folder / "parity.cpp"], check=True)
    said = subprocess.run([program, folder / "samples.safetensors", str(allowed)], capture_output=True, text=True)
    assert said.stdout, (name, said.stderr)
    result = json.loads(said.stdout)
    assert said.returncode == 0 and result["allocations"] == 0, (name, compiler, result)
    # Compiled without vector instructions, as a whole program: checks contract, history, memory, non-finite numbers and malloc.
    subprocess.run([compiler, *FLAGS, "-O1", f"-DPOLICY={name}", "-I", folder, "-Wl,--wrap=malloc", "-o", program, check_source], check=True)
    said = subprocess.run([program], capture_output=True, text=True)
    assert said.returncode == 0, (name, compiler, said.stdout, said.stderr)
    return result


def check_controller(folder, compilers, example, check_source):
    """The logic of the ROS 2 controller, which needs no ROS."""
    for compiler in compilers:
        program = folder / f"controller_{pathlib.Path(compiler).name}"
        subprocess.run([compiler, *FLAGS, "-O1", f"-DPOLICY={folder.name}", "-I", folder, "-I", example, "-o", program, check_source], check=True)
        said = subprocess.run([program], capture_output=True, text=True)
        assert said.returncode == 0, (compiler, said.stdout, said.stderr)


def check_project(folder, build):
    """Configures, builds and tests an exported project as a user does."""
    for words in (["cmake", "-S", folder, "-B", build], ["cmake", "--build", build], ["ctest", "--test-dir", build, "--output-on-failure"]):
        said = subprocess.run(words, capture_output=True, text=True)
        assert said.returncode == 0, (folder.name, said.stdout, said.stderr)


def check_all(folders, compilers, check_source):
    """Prints the largest differences of actions from those of the training policy."""
    for folder in folders:
        contract = json.loads((folder / "contract.json").read_text())
        rows, difference = check_onnx(folder, contract)
        assert rows == int(OBSERVATIONS), (folder.name, rows)
        headers = [check_header(folder, compiler, check_source) for compiler in compilers]
        worst = max(header["largest_difference"] for header in headers)
        print(f"{folder.name:16} {rows} observations: ONNX Runtime differs by {difference:.1e}, the header by {worst:.1e}", flush=True)


def train_and_export(troupe, top):
    """The folders that `troupe export` writes for TRAINED."""
    top.mkdir()
    ends = 'evaluation { period: 0 final_episodes: 1 video: false } stop { environment_steps: 5000 }'
    for name, experiment in TRAINED.items():
        (top / f"{name}.textproto").write_text(f"{experiment} {ends}")
        subprocess.run([troupe, "train", f"{name}.textproto", "--quiet", "--set", "deterministic=true"], cwd=top, check=True, stdout=subprocess.DEVNULL)
        run, = (top / "runs" / name).iterdir()
        subprocess.run([troupe, "export", run, "--out", top / name, "--namespace", name, "--samples", OBSERVATIONS], cwd=top, check=True, stdout=subprocess.DEVNULL)
        assert json.loads((top / name / "contract.json").read_text())["updates"] >= 10, f"{name} was not trained"
    return [top / name for name in TRAINED]


def check_loop(folders, example, top):
    """The example's loop around a policy from states and one from pixels with a memory."""
    for name in ("policy", "ppo_both"):
        folder = next(f for f in folders if f.name == name)
        build = top / f"loop_{name}"
        subprocess.run(["cmake", "-S", example, "-B", build, f"-DPOLICY_FOLDER={folder}", f"-DPOLICY={name}"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run([build / "realtime_loop", "0.2", "2000"], check=True, capture_output=True, text=True).stdout
        result = json.loads(said)
        assert result["steps"] == 101 and result["refused_observations"] == 0, result
        assert 0 <= result["missed_deadlines"] <= 101 and result["step_max_us"] > 0, result
        assert subprocess.run([build / "realtime_loop", "0"], capture_output=True).returncode == 2
        print("realtime_loop", said.strip(), flush=True)


def main():
    cases, check_source, examples, troupe = sys.argv[1:]
    compilers = [c for c in ("g++", "clang++") if shutil.which(c)]
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        subprocess.run([cases, top / "float", OBSERVATIONS], check=True)
        folders = sorted(f for f in (top / "float").iterdir() if f.is_dir())
        assert len(folders) == 16, folders
        check_all([*folders, *train_and_export(troupe, top / "trained")], compilers, check_source)
        check_project(folders[0], top / "build")
        check_loop(folders, f"{examples}/realtime_loop", top)
        check_controller(top / "float/policy", compilers, f"{examples}/ros2_controller", pathlib.Path(check_source).with_name("check_controller.cpp"))
        for weights, allowed in (("bfloat16", 0.2), ("int8", 0.2)):
            names = ("policy", "sac_bounds", "ppo_memory", "d4pg_pixels", "d4pg_blocks", "sac_spherical")
            subprocess.run([cases, top / weights, "300", weights, *names], check=True, stdout=subprocess.DEVNULL)
            for name in names:
                bound = allowed * (4 if name == "sac_bounds" else 1)  # its actions reach from -2 to 2
                check_header(top / weights / name, compilers[0], check_source, 1e-4)
                samples = load_file(top / weights / name / "samples.safetensors")
                difference = float(numpy.abs(samples["rounded_action"] - samples["action"]).max())
                assert 0 < difference <= bound, (name, weights, difference)
                print(f"{name:16} {weights} weights differ by {difference:.1e}", flush=True)
            subprocess.run([cases, top / weights, "300", weights, "r2d2"], check=True, stdout=subprocess.DEVNULL)
            for name in ("policy", "sac_bounds", "r2d2"):  # the rounded weights of r2d2 also change some choices
                check_project(top / weights / name, top / f"build_{weights}_{name}")


main()
