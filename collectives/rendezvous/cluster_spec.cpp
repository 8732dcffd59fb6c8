#include "collectives/rendezvous/cluster_spec.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "collectives/rendezvous/node_list.hpp"

namespace troupe::collectives {
namespace {

constexpr std::size_t kLongestText = 4 << 20; // bytes
constexpr std::size_t kLongestHost = 253;
constexpr int kMostSlots = 4096;

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& message) {
  throw std::invalid_argument(message);
}

bool host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
}

bool address_character(char c) { // allowed in an IPv6 address in brackets
  return std::isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
}

void read_role(TfConfig& config, const std::string& role, const Json& addresses,
               std::set<std::string>& seen) {
  const std::string key = "TF_CONFIG cluster." + role;
  if (role != "worker" && role != "chief" && role != "ps" && role != "evaluator")
    refuse(key + ": the role must be one of worker, chief, ps, evaluator");
  if (!addresses.is_array() || addresses.empty() || addresses.size() > kMostNodes)
    refuse(key + ": must be a list of 1 to " + std::to_string(kMostNodes) + " \"host:port\"");
  if (role == "chief" && addresses.size() != 1)
    refuse(key + ": there is at most one chief, not " + std::to_string(addresses.size()));
  for (const auto& address : addresses) {
    if (!address.is_string())
      refuse(key + ": every address must be a string \"host:port\"");
    const auto& text = address.get_ref<const std::string&>();
    if (!seen.insert(text).second)
      refuse(key + ": " + shown(text) + " is listed twice; every task needs a different address");
    try {
      config.cluster[role].push_back(parse_endpoint(text));
    } catch (const std::invalid_argument& error) {
      refuse(key + ": " + error.what());
    }
  }
}

void read_task(TfConfig& config, const Json& task) {
  const auto type = task.find("type");
  if (type == task.end() || !type->is_string())
    refuse("TF_CONFIG task.type: must be one of worker, chief, ps, evaluator");
  config.role = type->get<std::string>();
  if (config.role == "master")
    config.role = "chief"; // its older name
  const auto index = task.find("index");
  if (index == task.end() || !index->is_number_integer())
    refuse("TF_CONFIG task.index: must be a whole number from 0");
  const auto value = index->is_number_unsigned() && index->get<std::uint64_t>() > kMostNodes
                         ? std::int64_t{-1}
                         : index->get<std::int64_t>();
  const auto role = config.cluster.find(config.role);
  const bool outside = role == config.cluster.end() && config.role == "evaluator";
  if (role == config.cluster.end() && !outside)
    refuse("TF_CONFIG task.type: " + shown(config.role)
           + " is not a role of the cluster; list it in "
             "cluster, or correct the type");
  const auto count = outside ? kMostNodes : role->second.size();
  if (value < 0 || value >= static_cast<std::int64_t>(count))
    refuse("TF_CONFIG task.index: " + std::to_string(value) + " must be in [0, "
           + std::to_string(count) + "), because the cluster lists that many of role "
           + config.role);
  config.index = static_cast<int>(value);
}

} // namespace

Endpoint parse_endpoint(std::string_view text, bool port_optional) {
  const auto wrong = [&](const std::string& rule) { refuse(shown(text) + " " + rule); };
  std::string_view host, port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos)
      wrong("opens a bracket and does not close it");
    host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    has_port = !rest.empty() && rest.front() == ':';
    if (!rest.empty() && !has_port)
      wrong("must have :port after the bracket");
    port = has_port ? rest.substr(1) : rest;
    if (!std::all_of(host.begin(), host.end(), address_character))
      wrong("has no IPv6 address in its brackets");
  } else {
    const auto colon = text.find(':');
    has_port = colon != std::string_view::npos;
    host = text.substr(0, colon);
    port = has_port ? text.substr(colon + 1) : std::string_view();
    if (!std::all_of(host.begin(), host.end(), host_character))
      wrong("has a host name with characters other than letters, digits, '-', '.' and '_'");
  }
  if (host.empty() || host.size() > kLongestHost)
    wrong("must be host:port, with a host of 1 to 253 characters");
  Endpoint result{std::string(host), 0};
  if (!has_port) {
    if (!port_optional)
      wrong("must be host:port");
    return result;
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size() || result.port < 1
      || result.port > 65535)
    wrong("must have a port in [1, 65535]");
  return result;
}

TfConfig parse_tf_config(std::string_view text) {
  if (text.size() > kLongestText)
    refuse("TF_CONFIG: longer than 4 MiB");
  const auto root = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object())
    refuse("TF_CONFIG: " + shown(text)
           + " is not a JSON object; it must be {\"cluster\": {…}, "
             "\"task\": {\"type\": …, \"index\": …}}");
  const auto cluster = root.find("cluster");
  const auto task = root.find("task");
  if (cluster == root.end() || !cluster->is_object() || cluster->empty())
    refuse("TF_CONFIG cluster: must be an object of roles, e.g. {\"worker\": [\"host:port\"]}");
  if (task == root.end() || !task->is_object())
    refuse("TF_CONFIG task: must be an object, e.g. {\"type\": \"worker\", \"index\": 0}");
  TfConfig config;
  std::set<std::string> seen;
  for (const auto& [role, addresses] : cluster->items()) {
    const std::string name = role == "master" ? "chief" : role;
    if (config.cluster.count(name))
      refuse("TF_CONFIG cluster: master is the older name of chief; give one of them");
    read_role(config, name, addresses, seen);
  }
  if (!config.cluster.count("worker") && !config.cluster.count("chief"))
    refuse("TF_CONFIG cluster: must list a worker or a chief");
  read_task(config, *task);
  return config;
}

std::vector<HostSlots> parse_host_file(std::string_view text) {
  if (text.size() > kLongestText)
    refuse("longer than 4 MiB");
  std::vector<HostSlots> result;
  std::set<std::string> seen;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int count = 1; std::getline(lines, line); ++count) {
    std::istringstream words(line.substr(0, line.find('#')));
    const auto wrong = [&](const std::string& rule) {
      refuse("line " + std::to_string(count) + ": " + rule);
    };
    std::string host, slots, more;
    if (!(words >> host))
      continue;
    HostSlots entry;
    try {
      entry.host = parse_endpoint(host, true);
    } catch (const std::invalid_argument& error) {
      wrong(error.what());
    }
    if (!seen.insert(entry.host.host).second)
      wrong("host " + entry.host.host + " is listed twice; give it more slots instead");
    if (!result.empty() && entry.host.port != 0)
      wrong("only the first host may have a port, that of the rendezvous");
    if (words >> slots) {
      const char* end = slots.data() + slots.size();
      const auto parsed = slots.starts_with("slots=")
                              ? std::from_chars(slots.data() + 6, end, entry.slots)
                              : std::from_chars_result{slots.data(), std::errc::invalid_argument};
      if (parsed.ec != std::errc() || parsed.ptr != end || entry.slots < 1
          || entry.slots > kMostSlots || words >> more)
        wrong(shown(line) + " must be host[:port] [slots=N] with N in [1, "
              + std::to_string(kMostSlots) + "]");
    }
    result.push_back(entry);
    if (result.size() > kMostNodes)
      wrong("more than " + std::to_string(kMostNodes) + " hosts");
  }
  if (result.empty())
    refuse("it names no host");
  return result;
}

} // namespace troupe::collectives
