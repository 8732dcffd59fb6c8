#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::collectives {

struct Endpoint {
  std::string host;
  int port = 0; // 0: not given
};

/// Parses untrusted text such as "10.0.0.1:2222", "[::1]:2222" or "node7:2222". The port may be
/// missing only if `port_optional`. Throws std::invalid_argument saying what is wrong.
Endpoint parse_endpoint(std::string_view text, bool port_optional = false);

/// The contents of the variable TF_CONFIG: {"cluster": {"worker": ["host:port", …], "chief": […],
/// "ps": […], "evaluator": […]}, "task": {"type": "worker", "index": 0}}.
struct TfConfig {
  std::map<std::string, std::vector<Endpoint>> cluster; // by role
  std::string role;
  int index = 0;
};

/// Throws std::invalid_argument with the key and the rule. There may be at most one chief; the task
/// must be in the cluster (an evaluator may be missing); no address may occur twice.
TfConfig parse_tf_config(std::string_view text);

struct HostSlots {
  Endpoint host;
  int slots = 1; // number of ranks on the host
};

/// Parses the project's host file, with one host per line and "# …" as a comment:
///   10.0.0.1:29500 slots=4    rank 0's line names the port of the rendezvous
///   10.0.0.2 slots=4
/// Throws std::invalid_argument with the line and the rule.
std::vector<HostSlots> parse_host_file(std::string_view text);

} // namespace troupe::collectives
