#include "experiments/cluster/pods.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "experiments/cluster/cluster.hpp"
#include "experiments/cluster/cluster_checks.hpp"

namespace troupe::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kTemporaryBytes = std::int64_t{1} << 30;

Json resources(const Cluster& cluster, int cores, int gpus, std::int64_t memory_bytes) {
  Json amounts = {{"cpu", std::to_string(cores)}, {"memory", std::to_string(memory_bytes)}};
  if (gpus > 0) {
    amounts[cluster.kubernetes().gpu_resource()] = std::to_string(gpus);
  }
  return {{"requests", amounts}, {"limits", amounts}};
}

Json container_security() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", {"ALL"}}}}};
}

Json mount(const char* name, const std::string& path, bool read_only = false) {
  Json out = {{"name", name}, {"mountPath", path}};
  if (read_only) {
    out["readOnly"] = true;
  }
  return out;
}

Json field(const char* path) {
  return {{"fieldRef", {{"fieldPath", path}}}};
}

Json environment(const Cluster& cluster, const PodPlan& plan) {
  const std::string head = cluster.name() + "-head-0." + cluster.name() + "."
                           + cluster.kubernetes().namespace_()
                           + ".svc:" + std::to_string(head_endpoint(cluster).port);
  Json out = Json::array();
  out.push_back({{"name", "TROUPE_KEYS"}, {"value", kKeysFolder}});
  out.push_back({{"name", "HOME"}, {"value", "/tmp"}});
  out.push_back({{"name", "TROUPE_ADDRESS"}, {"valueFrom", field("status.podIP")}});
  if (plan.component == "node" && plan.named) {
    out.push_back({{"name", "TROUPE_HEAD"}, {"value", head}});
    if (!plan.one) {
      out.push_back({{"name", "POD_INDEX"},
                     {"valueFrom",
                      field("metadata.annotations['batch.kubernetes.io/job-completion-index']")}});
    }
    out.push_back({{"name", "TROUPE_NODE_NAME"},
                   {"value", plan.one ? plan.node : plan.node + "-$(POD_INDEX)"}});
  }
  return out;
}

/// Detects a stopped or dead process, and does not mistake a busy one for it.
Json liveness() {
  return {{"exec", {{"command", {"grep", "-qE", "^State:[[:space:]]*[RSDI]", "/proc/1/status"}}}},
          {"periodSeconds", 20},
          {"timeoutSeconds", 10},
          {"failureThreshold", 3}};
}

Json main_container(const Cluster& cluster, const PodPlan& plan) {
  const auto& k8s = cluster.kubernetes();
  Json out = {{"name", plan.component},
              {"image", k8s.image()},
              {"imagePullPolicy", KubernetesLauncher::PullPolicy_Name(k8s.pull_policy())},
              {"env", environment(cluster, plan)},
              {"resources", resources(cluster, plan.cores, plan.gpus, plan.memory_bytes)},
              {"securityContext", container_security()},
              {"livenessProbe", liveness()}};
  if (!plan.command.empty()) {
    out["command"] = plan.command;
  }
  if (plan.port > 0) {
    const Json knock = {{"port", plan.port}};
    const auto times = cluster.supervision().join_seconds();
    out["ports"] = Json::array({{{"name", "head"}, {"containerPort", plan.port}}});
    out["startupProbe"] = {{"tcpSocket", knock},
                           {"periodSeconds", 5},
                           {"failureThreshold", static_cast<int>(std::ceil(times / 5)) + 12}};
    out["readinessProbe"] = {{"tcpSocket", knock}, {"periodSeconds", 60}, {"timeoutSeconds", 10}};
  }
  Json mounts = {mount("keys", kKeysFolder, true), mount("runs", cluster.runs()),
                 mount("memory", "/dev/shm"), mount("temporary", "/tmp")};
  if (plan.files) {
    mounts.push_back(mount("files", kFilesFolder, true));
  }
  out["volumeMounts"] = mounts;
  return out;
}

Json volumes(const Cluster& cluster, const PodPlan& plan) {
  const auto& k8s = cluster.kubernetes();
  Json out = Json::array();
  // Files of a Secret belong to root; the pod's private group may read them.
  out.push_back({{"name", "keys"},
                 {"secret", {{"secretName", cluster.name() + "-keys"}, {"defaultMode", 0440}}}});
  out.push_back(
      {{"name", "runs"}, {"persistentVolumeClaim", {{"claimName", k8s.storage_claim()}}}});
  out.push_back(
      {{"name", "memory"},
       {"emptyDir",
        {{"medium", "Memory"}, {"sizeLimit", std::to_string(k8s.shared_memory_bytes())}}}});
  out.push_back(
      {{"name", "temporary"}, {"emptyDir", {{"sizeLimit", std::to_string(kTemporaryBytes)}}}});
  if (plan.files) {
    out.push_back({{"name", "files"}, {"configMap", {{"name", cluster.name() + "-files"}}}});
  }
  return out;
}

void add_scheduling(const Cluster& cluster, Json& spec) {
  const auto& k8s = cluster.kubernetes();
  if (!k8s.service_account().empty()) {
    spec["serviceAccountName"] = k8s.service_account();
  }
  if (!k8s.priority_class().empty()) {
    spec["priorityClassName"] = k8s.priority_class();
  }
  if (!k8s.pull_secret().empty()) {
    spec["imagePullSecrets"] = Json::array({{{"name", k8s.pull_secret()}}});
  }
  for (const std::string& text : k8s.node_selector()) {
    const auto [key, value] = key_and_value(text).value();
    spec["nodeSelector"][key] = value;
  }
  for (const std::string& text : k8s.toleration()) {
    const auto pair = key_and_value(text);
    spec["tolerations"].push_back(
        pair ? Json{{"key", pair->first}, {"operator", "Equal"}, {"value", pair->second}}
             : Json{{"key", text}, {"operator", "Exists"}});
  }
}

} // namespace

Json deployment_labels(const Cluster& cluster) {
  return {{"app.kubernetes.io/name", "troupe"}, {"app.kubernetes.io/instance", cluster.name()}};
}

Json pod_template(const Cluster& cluster, const PodPlan& plan) {
  const auto user = cluster.kubernetes().user();
  Json labels = deployment_labels(cluster);
  labels["app.kubernetes.io/component"] = plan.component;
  Json spec = {{"restartPolicy", "Never"},
               {"subdomain", cluster.name()},
               {"automountServiceAccountToken", false},
               {"enableServiceLinks", false},
               {"terminationGracePeriodSeconds",
                static_cast<std::int64_t>(std::ceil(cluster.supervision().grace_seconds())) + 30},
               {"securityContext",
                {{"runAsNonRoot", true},
                 {"runAsUser", user},
                 {"runAsGroup", user},
                 {"fsGroup", user},
                 {"fsGroupChangePolicy", "OnRootMismatch"},
                 {"seccompProfile", {{"type", "RuntimeDefault"}}}}}};
  add_scheduling(cluster, spec);
  spec["containers"] = Json::array({main_container(cluster, plan)});
  spec["volumes"] = volumes(cluster, plan);
  return {{"metadata", {{"labels", labels}}}, {"spec", spec}};
}

} // namespace troupe::experiments
