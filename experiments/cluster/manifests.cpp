#include "experiments/cluster/manifests.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/pods.hpp"
#include "experiments/cluster/slurm_script.hpp"
#include "experiments/cluster/yaml.hpp"
#include "experiments/config/config.hpp"

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHostFile = "/etc/mpi/hostfile"; // where the MPI operator puts it

Json metadata(const Cluster& cluster, const std::string& name) {
  return {{"name", name},
          {"namespace", cluster.kubernetes().namespace_()},
          {"labels", deployment_labels(cluster)}};
}

Json selector(const Cluster& cluster, const std::string& component) {
  Json labels = deployment_labels(cluster);
  if (!component.empty()) {
    labels["app.kubernetes.io/component"] = component;
  }
  return {{"matchLabels", labels}};
}

/// `count` indexed pods, which restart when they fail, each within its own limit; an eviction does
/// not count as a failure. A node that finds no head is not started again, so that it does not hold
/// its GPUs for hours after the head has failed for good.
Json indexed_job(const Cluster& cluster, const std::string& name, int count, const PodPlan& plan) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata(cluster, name)},
          {"spec",
           {{"completionMode", "Indexed"},
            {"completions", count},
            {"parallelism", count},
            {"backoffLimitPerIndex", cluster.kubernetes().retries()},
            {"ttlSecondsAfterFinished", cluster.kubernetes().keep_seconds()},
            {"podFailurePolicy",
             {{"rules",
               Json::array({{{"action", "Ignore"},
                             {"onPodConditions",
                              Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}})}},
                            {{"action", "FailIndex"},
                             {"onExitCodes", {{"operator", "In"}, {"values", {kNoHeadCode}}}}}})}}},
            {"template", pod_template(cluster, plan)}}}};
}

// Exit code of an evicted head. 0 would complete the Job.
constexpr const char* kInterruptedCode = "75"; // EX_TEMPFAIL of sysexits.h

std::vector<std::string> head_command(const Cluster& cluster) {
  const HostPort listen = head_endpoint(cluster);
  const std::string folder = kFilesFolder;
  const bool six = listen.host.find(':') != std::string::npos;
  return {"troupe",
          "launch",
          folder + "/cluster.textproto",
          folder + "/experiment.textproto",
          "--launcher",
          "none",
          "--listen",
          (six ? "[" + listen.host + "]:" : listen.host + ":") + std::to_string(listen.port),
          "--runs",
          cluster.runs(),
          "--resume",
          "--interrupted-code",
          kInterruptedCode};
}

PodPlan head_plan(const Cluster& cluster) {
  return {.component = "head",
          .command = head_command(cluster),
          .cores = cluster.head().cores(),
          .memory_bytes =
              cluster.head().memory_bytes() + cluster.kubernetes().shared_memory_bytes(),
          .port = head_endpoint(cluster).port,
          .files = true};
}

PodPlan node_plan(const Cluster& cluster, const ClusterNode& block) {
  return {.component = "node",
          .command = {"troupe", "node", "--cores", std::to_string(block.cores()), "--gpus",
                      std::to_string(block.gpus()), "--memory",
                      std::to_string(block.memory_bytes()), "--join-seconds",
                      std::to_string(node_join_seconds(cluster))},
          .cores = block.cores(),
          .gpus = block.gpus(),
          .memory_bytes = block.memory_bytes(),
          .node = block.name(),
          .one = block.count() == 1};
}

Json service(const Cluster& cluster) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata(cluster, cluster.name())},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", deployment_labels(cluster)},
            {"ports", Json::array({{{"name", "head"}, {"port", head_endpoint(cluster).port}}})}}}};
}

Json disruption_budget(const Cluster& cluster, const std::string& component, int available) {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", metadata(cluster, cluster.name() + "-" + component)},
          {"spec", {{"minAvailable", available}, {"selector", selector(cluster, component)}}}};
}

/// Only pods of the deployment can connect to its pods.
Json network_policy(const Cluster& cluster) {
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata(cluster, cluster.name())},
          {"spec",
           {{"podSelector", selector(cluster, "")},
            {"policyTypes", {"Ingress"}},
            {"ingress",
             Json::array({{{"from", Json::array({{{"podSelector", selector(cluster, "")}}})}}})}}}};
}

Json kustomization(const Cluster& cluster, const std::vector<std::string>& resources) {
  return {{"apiVersion", "kustomize.config.k8s.io/v1beta1"},
          {"kind", "Kustomization"},
          {"namespace", cluster.kubernetes().namespace_()},
          {"resources", resources},
          {"configMapGenerator",
           Json::array({{{"name", cluster.name() + "-files"},
                         {"files", {"cluster.textproto", "experiment.textproto"}}}})},
          {"generatorOptions",
           {{"disableNameSuffixHash", true}, {"labels", deployment_labels(cluster)}}}};
}

/// The cluster as seen by its pods.
Cluster inside(Cluster cluster) {
  cluster.set_keys(kKeysFolder);
  return cluster;
}

/// The operator gives the launcher's pod a host file and SSH access to the workers. The head runs
/// in that pod and starts the nodes with mpirun.
Cluster inside_mpi(Cluster cluster) {
  cluster = inside(std::move(cluster));
  const int port = head_endpoint(cluster).port;
  cluster.mutable_head()->set_address(cluster.name() + "-launcher." + cluster.name() + "."
                                      + cluster.kubernetes().namespace_()
                                      + ".svc:" + std::to_string(port));
  cluster.clear_kubernetes();
  auto& mpi = *cluster.mutable_mpi();
  mpi.set_hostfile(kHostFile);
  mpi.set_mpirun("mpirun");
  mpi.set_program("troupe");
  mpi.set_start_seconds(cluster.supervision().join_seconds());
  return cluster;
}

Json mpi_job(const Cluster& cluster) {
  const ClusterNode& block = cluster.node(0);
  PodPlan launcher = head_plan(cluster);
  launcher.command = {"sh", "-c",
                      std::string("exec troupe launch ") + kFilesFolder + "/cluster.textproto "
                          + kFilesFolder + "/experiment.textproto --listen \"$TROUPE_ADDRESS:"
                          + std::to_string(head_endpoint(cluster).port) + "\" --runs "
                          + shell_word(cluster.runs()) + " --resume --interrupted-code "
                          + kInterruptedCode};
  PodPlan worker = node_plan(cluster, block);
  worker.named = false;
  worker.command = {"/usr/sbin/sshd", "-De", "-f", "/opt/troupe/sshd_config"};
  return {{"apiVersion", "kubeflow.org/v2beta1"},
          {"kind", "MPIJob"},
          {"metadata", metadata(cluster, cluster.name())},
          {"spec",
           {{"slotsPerWorker", 1},
            {"mpiImplementation", "OpenMPI"},
            {"sshAuthMountPath", "/opt/troupe/.ssh"},
            {"runPolicy",
             {{"cleanPodPolicy", "Running"},
              {"backoffLimit", cluster.kubernetes().retries()},
              {"ttlSecondsAfterFinished", cluster.kubernetes().keep_seconds()}}},
            {"mpiReplicaSpecs",
             {{"Launcher", {{"replicas", 1}, {"template", pod_template(cluster, launcher)}}},
              {"Worker",
               {{"replicas", block.count()}, {"template", pod_template(cluster, worker)}}}}}}}};
}

/// The head's program runs in the pod of Ray's head and starts the nodes as actors in the workers.
Cluster inside_ray(Cluster cluster) {
  cluster = inside(std::move(cluster));
  const int port = head_endpoint(cluster).port;
  cluster.clear_kubernetes();
  // --listen replaces this, because the pod's address is not known in advance.
  cluster.mutable_head()->set_listen("127.0.0.1:" + std::to_string(port));
  auto& ray = *cluster.mutable_ray();
  ray.set_program("troupe");
  ray.set_strategy("STRICT_SPREAD");
  ray.set_start_seconds(cluster.supervision().join_seconds());
  for (ClusterNode& block : *cluster.mutable_node()) {
    block.clear_memory_bytes(); // the pod's limits apply
  }
  return cluster;
}

/// The operator adds Ray's own command to a pod that has no command.
Json ray_pod(const Cluster& cluster, PodPlan plan) {
  plan.command.clear();
  plan.port = 0;
  plan.named = false;
  return pod_template(cluster, plan);
}

/// A job of the KubeRay operator, with its own Ray cluster that ends with it.
Json ray_job(const Cluster& cluster) {
  // Nodes use little of Ray's object store, which is part of the shared memory.
  const Json common = {{"object-store-memory", "100000000"}};
  Json head = common, workers = Json::array();
  head["num-cpus"] = "0"; // runs nothing but the head's program
  for (const ClusterNode& block : cluster.node()) {
    workers.push_back({{"groupName", block.name()},
                       {"replicas", block.count()},
                       {"minReplicas", block.count()},
                       {"maxReplicas", block.count()},
                       {"rayStartParams", common},
                       {"template", ray_pod(cluster, node_plan(cluster, block))}});
  }
  const std::string program =
      std::string("exec troupe launch ") + kFilesFolder + "/cluster.textproto " + kFilesFolder
      + "/experiment.textproto --listen \"$TROUPE_ADDRESS:"
      + std::to_string(head_endpoint(cluster).port) + "\" --runs " + shell_word(cluster.runs())
      + " --resume --interrupted-code " + kInterruptedCode;
  return {{"apiVersion", "ray.io/v1"},
          {"kind", "RayJob"},
          {"metadata", metadata(cluster, cluster.name())},
          {"spec",
           {{"entrypoint", "sh -c " + shell_word(program)},
            {"backoffLimit", cluster.kubernetes().retries()},
            {"shutdownAfterJobFinishes", true},
            {"ttlSecondsAfterFinished", cluster.kubernetes().keep_seconds()},
            {"rayClusterSpec",
             {{"headGroupSpec",
               {{"rayStartParams", head}, {"template", ray_pod(cluster, head_plan(cluster))}}},
              {"workerGroupSpecs", workers}}}}}};
}

} // namespace

std::map<std::string, std::string> kubernetes_manifests(const Cluster& cluster,
                                                        const Experiment& experiment) {
  std::map<std::string, Json> all;
  int nodes = 0;
  for (const ClusterNode& block : cluster.node()) {
    const std::string name = cluster.name() + "-" + block.name();
    all["nodes-" + block.name() + ".yaml"] =
        indexed_job(cluster, name, block.count(), node_plan(cluster, block));
    nodes += block.count();
  }
  all["head.yaml"] = indexed_job(cluster, cluster.name() + "-head", 1, head_plan(cluster));
  all["service.yaml"] = service(cluster);
  all["budget-head.yaml"] = disruption_budget(cluster, "head", 1);
  all["budget-node.yaml"] = disruption_budget(cluster, "node", std::max(nodes - 1, 0));
  all["network-policy.yaml"] = network_policy(cluster);
  std::vector<std::string> names;
  for (const auto& [name, value] : all) {
    names.push_back(name);
  }
  all["kustomization.yaml"] = kustomization(cluster, names);
  std::map<std::string, std::string> files = {{"cluster.textproto", resolved_text(inside(cluster))},
                                              {"experiment.textproto", resolved_text(experiment)}};
  if (cluster.node_size() == 1) {
    all["mpi/mpijob.yaml"] = mpi_job(cluster);
    all["mpi/kustomization.yaml"] = kustomization(cluster, {"mpijob.yaml"});
    files["mpi/cluster.textproto"] = resolved_text(inside_mpi(cluster));
    files["mpi/experiment.textproto"] = resolved_text(experiment);
  }
  all["ray/rayjob.yaml"] = ray_job(cluster);
  all["ray/kustomization.yaml"] = kustomization(cluster, {"rayjob.yaml"});
  files["ray/cluster.textproto"] = resolved_text(inside_ray(cluster));
  files["ray/experiment.textproto"] = resolved_text(experiment);
  for (const auto& [name, value] : all) {
    files[name] = yaml_text(value);
  }
  return files;
}

std::string secret_command(const Cluster& cluster) {
  std::string command = "kubectl --namespace " + shell_word(cluster.kubernetes().namespace_())
                        + " create secret generic " + shell_word(cluster.name() + "-keys");
  std::vector<std::string> names = {"ca.crt", "node.pem", "curve.secret", "token"};
  if (std::filesystem::exists(cluster.keys() + "/curve.retired")) {
    names.push_back("curve.retired"); // lets pods with the previous pair connect
  }
  for (const std::string& name : names) { // the authority's secret is not copied
    command.append(" --from-file=").append(shell_word(cluster.keys() + "/" + name));
  }
  return command;
}

} // namespace troupe::experiments
