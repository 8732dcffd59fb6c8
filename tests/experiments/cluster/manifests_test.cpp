#include "experiments/cluster/manifests.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/slurm_script.hpp"
#include "experiments/cluster/yaml.hpp"
#include "experiments/config/config.hpp"
#include "tests/folders.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe::experiments;
using troupe::has;
namespace fs = std::filesystem;

namespace {

const fs::path kClusterFiles = in_source("experiments/clusters");

Experiment small_experiment() {
  return parse_experiment("environment { task: \"cartpole_balance\" }", "e.textproto");
}

} // namespace

TEST_CASE("YAML output keeps the order of keys and quotes text that YAML would misread") {
  using Json = nlohmann::ordered_json;
  CHECK(
      yaml_text({{"b", 1}, {"a", "no"}, {"on", true}, {"list", {1, "x"}}, {"none", Json::object()}})
      == "b: 1\na: \"no\"\n\"on\": true\nlist:\n  - 1\n  - \"x\"\nnone: {}\n");
  CHECK(yaml_text(
            {{"deep", {{"list", Json::array({{{"k", "v"}, {"l", Json::array()}}, {{"m", {1}}}})}}}})
        == "deep:\n  list:\n    - k: \"v\"\n      l: []\n    - m:\n        - 1\n");
  CHECK(yaml_text({{"1a", "line\nbreak \"quoted\" \xff"}})
        == "\"1a\": \"line\\nbreak \\\"quoted\\\" \xef\xbf\xbd\"\n");
}

TEST_CASE("Kubernetes manifests contain one Job per node block, one for the head, and their "
          "supporting objects") {
  const Cluster cluster = load_cluster(kClusterFiles / "kubernetes.textproto");
  const auto files = kubernetes_manifests(cluster, small_experiment());
  std::vector<std::string> names;
  for (const auto& [name, text] : files)
    names.push_back(name);
  CHECK(names
        == std::vector<std::string>{"budget-head.yaml", "budget-node.yaml", "cluster.textproto",
                                    "experiment.textproto", "head.yaml", "kustomization.yaml",
                                    "network-policy.yaml", "nodes-cpu.yaml", "nodes-gpu.yaml",
                                    "ray/cluster.textproto", "ray/experiment.textproto",
                                    "ray/kustomization.yaml", "ray/rayjob.yaml", "service.yaml"});
  for (const std::string& name : names) {
    if (name.ends_with(".yaml") && name != "kustomization.yaml" && !name.starts_with("ray/"))
      CHECK(has(files.at("kustomization.yaml"), "- \"" + name + "\""));
  }
  CHECK(has(files.at("nodes-cpu.yaml"), "completions: 4\n"));
  CHECK(has(files.at("nodes-gpu.yaml"), "nvidia.com/gpu: \"1\""));
  CHECK_FALSE(has(files.at("nodes-cpu.yaml"), "nvidia.com/gpu: "));
  CHECK(has(files.at("nodes-cpu.yaml"), "value: \"cpu-$(POD_INDEX)\""));
  CHECK(has(files.at("nodes-cpu.yaml"), "  backoffLimitPerIndex: 20\n"));
  CHECK(has(files.at("nodes-cpu.yaml"), "action: \"FailIndex\""));
  CHECK(has(files.at("nodes-cpu.yaml"), "- 69\n"));
  CHECK(has(files.at("budget-node.yaml"), "minAvailable: 5\n"));
  CHECK(has(files.at("nodes-cpu.yaml"), "value: \"kubernetes-head-0.kubernetes.troupe.svc:4242\""));
}

TEST_CASE("Nodes look for the head as long as it waits for them, and longer in pods") {
  Cluster cluster = load_cluster(kClusterFiles / "kubernetes.textproto");
  for (const auto& [join, words] : {std::pair{60.0, "900"}, {1800.5, "1801"}}) {
    cluster.mutable_supervision()->set_join_seconds(join);
    const std::string node = kubernetes_manifests(cluster, small_experiment()).at("nodes-cpu.yaml");
    CHECK(has(node, "- \"--join-seconds\"\n"));
    CHECK(has(node, "- \"" + std::string(words) + "\"\n"));
  }
  cluster = load_cluster(kClusterFiles / "slurm.textproto");
  CHECK(has(slurm_script(cluster, {}), "\njoin_seconds='120'\n"));
  cluster.mutable_supervision()->set_join_seconds(1800);
  CHECK(has(slurm_script(cluster, {}), "\njoin_seconds='1800'\n"));
}

TEST_CASE("Pods read back the planned cluster, and the manifests contain no keys") {
  for (const char* block : {"kubernetes.textproto"}) {
    Cluster cluster = load_cluster(kClusterFiles / block);
    cluster.mutable_node()->DeleteSubrange(1, 1); // nodes that are all alike also make an MPIJob
    cluster.mutable_role()->Clear();
    const auto files = kubernetes_manifests(cluster, small_experiment());
    for (const char* folder : {"", "mpi/", "ray/"}) {
      CAPTURE(folder);
      const std::string text = files.at(folder + std::string("cluster.textproto"));
      const Cluster inside = parse_cluster(text, "/etc/troupe/cluster.textproto");
      CHECK(inside.keys() == "/keys");
      CHECK(inside.name() == cluster.name());
      CHECK(cluster_nodes(inside, {}).size() == 2);
      CHECK(inside.has_mpi() == (std::string(folder) == "mpi/"));
      CHECK(inside.has_ray() == (std::string(folder) == "ray/"));
      const std::string experiment_text = files.at(folder + std::string("experiment.textproto"));
      CHECK(parse_experiment(experiment_text, "e").environment().task() == "cartpole_balance");
    }
    CHECK(has(files.at("mpi/mpijob.yaml"), "replicas: 2\n"));
    CHECK(has(files.at("ray/rayjob.yaml"), "replicas: 2\n"));
    CHECK_FALSE(has(files.at("ray/rayjob.yaml"), "command:\n              - \"troupe\""));
    const std::string secret = secret_command(cluster);
    CHECK(has(secret, "create secret generic 'kubernetes-keys' --from-file='"));
    CHECK(has(secret, "/keys/node.pem'"));
    CHECK_FALSE(has(secret, "ca.key"));
  }
}

TEST_CASE("During a key rotation, the Secret also contains the retired pair") {
  const TemporaryFolder folder;
  Cluster cluster = load_cluster(kClusterFiles / "kubernetes.textproto");
  cluster.set_keys(folder.path().string());
  CHECK_FALSE(has(secret_command(cluster), "curve.retired"));
  std::ofstream(folder / "curve.retired") << "# until, secret\n";
  CHECK(has(secret_command(cluster), " --from-file='" + (folder / "curve.retired").string() + "'"));
}

TEST_CASE("Text from the cluster is quoted as one word of a script and one string of a manifest") {
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's; rm $(x)") == "'it'\\''s; rm $(x)'");
  Cluster cluster = load_cluster(kClusterFiles / "kubernetes.textproto");
  cluster.mutable_kubernetes()->set_image("x\": evil\n- y: 'z");
  const auto files = kubernetes_manifests(cluster, small_experiment());
  CHECK(has(files.at("head.yaml"), "image: \"x\\\": evil\\n- y: 'z\"\n"));
}

TEST_CASE("A batch script requests the cluster's resources and an early signal from Slurm") {
  const Cluster cluster = load_cluster(kClusterFiles / "slurm.textproto");
  const std::string script = slurm_script(
      cluster, {.cluster = "/d/c d.textproto", .experiment = "/d/e.textproto", .runs = "/r"});
  for (const char* line :
       {"#SBATCH --job-name=slurm\n", "#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=1\n",
        "#SBATCH --cpus-per-task=16\n", "#SBATCH --mem=61036M\n", "#SBATCH --gres=gpu:1\n",
        "#SBATCH --time=240\n", "#SBATCH --partition=gpu\n", "#SBATCH --signal=B:TERM@150\n",
        "#SBATCH --requeue\n", "\nmodule load cuda\n", "cluster='/d/c d.textproto'\n"}) {
    CAPTURE(line);
    CHECK(has(script, line));
  }
  // Setup lines may fail under the script's own options.
  CHECK(script.find("\nmodule load cuda\n") < script.find("\nset -euo pipefail\n"));
  CHECK_FALSE(has(script, "--account"));
  CHECK_FALSE(has(script, "--exclusive"));
  Cluster other = cluster;
  other.mutable_slurm()->set_requeue(false);
  other.mutable_slurm()->set_exclusive(true);
  other.mutable_slurm()->add_option("--comment=mine");
  other.mutable_node(0)->set_gpus(0);
  const std::string changed = slurm_script(other, {});
  CHECK(has(changed, "#SBATCH --no-requeue\n"));
  CHECK(has(changed, "#SBATCH --exclusive\n"));
  CHECK(has(changed, "#SBATCH --comment=mine\n"));
  CHECK_FALSE(has(changed, "--gres"));
}
