#include "learner/replicas/strategy_options.hpp"

#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#include "env/text/joined.hpp"
#include "env/text/number_in.hpp"

namespace troupe::learner {
namespace {

const std::map<std::string, StrategyKind>& kinds() {
  static const std::map<std::string, StrategyKind> all{
      {"one_device", StrategyKind::one_device},
      {"mirrored", StrategyKind::mirrored},
      {"multi_worker", StrategyKind::multi_worker},
      {"central_storage", StrategyKind::central_storage},
      {"parameter_server", StrategyKind::parameter_server},
      {"sync_groups", StrategyKind::sync_groups},
      {"backup_workers", StrategyKind::backup_workers},
      {"local_sgd", StrategyKind::local_sgd}};
  return all;
}

[[noreturn]] void refuse(const std::string& key, const std::string& value,
                         const std::string& rule) {
  throw std::invalid_argument("strategy: " + key + " \"" + value + "\" " + rule);
}

std::int64_t number(const std::string& key, const std::string& value, std::int64_t least,
                    std::int64_t most) {
  const auto result = env::number_in<std::int64_t>(value, least, most);
  if (!result)
    refuse(key, value,
           "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return *result;
}

template <class T>
std::string names_of(const std::map<std::string, T>& all) {
  return env::joined(all, ", ", &std::pair<const std::string, T>::first);
}

template <class T>
T choice(const std::string& key, const std::string& value, const std::map<std::string, T>& all) {
  if (const auto found = all.find(value); found != all.end())
    return found->second;
  refuse(key, value, "is none of " + names_of(all));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty())
      parts.push_back(part);
  return parts;
}

using Setter = std::function<void(StrategyOptions&, const std::string& key, const std::string&)>;

const std::map<std::string, Setter>& setters() {
  using Options = StrategyOptions;
  using Text = std::string;
  constexpr std::int64_t kMany = 1024, kUnbounded = 1'000'000'000;
  static const std::map<std::string, Setter> all{
      {"replicas", [=](Options& o, const Text& k,
                       const Text& v) { o.replicas = static_cast<int>(number(k, v, 1, kMany)); }},
      {"backend", [](Options& o, const Text&, const Text& v) { o.backend = v; }},
      {"sync_groups",
       [=](Options& o, const Text& k, const Text& v) {
         o.sync_groups = static_cast<int>(number(k, v, 1, kMany));
       }},
      {"backup_workers",
       [=](Options& o, const Text& k, const Text& v) {
         o.backup_workers = static_cast<int>(number(k, v, 0, kMany));
       }},
      {"local_steps", [=](Options& o, const Text& k,
                          const Text& v) { o.local_steps = number(k, v, 1, kUnbounded); }},
      {"average_moments",
       [](Options& o, const Text& k, const Text& v) {
         o.average_moments = choice<bool>(k, v, {{"true", true}, {"false", false}});
       }},
      {"max_staleness", [=](Options& o, const Text& k,
                            const Text& v) { o.max_staleness = number(k, v, 0, kUnbounded); }},
      {"max_lead",
       [=](Options& o, const Text& k, const Text& v) { o.max_lead = number(k, v, 1, kUnbounded); }},
      {"staleness_rate",
       [](Options& o, const Text& k, const Text& v) {
         o.staleness_rate =
             choice<StalenessRate>(k, v,
                                   {{"constant", StalenessRate::constant},
                                    {"inverse", StalenessRate::inverse},
                                    {"inverse_plus_one", StalenessRate::inverse_plus_one}});
       }},
      {"servers", [](Options& o, const Text&, const Text& v) { o.servers = split(v, ','); }},
      {"timeout_seconds", [](Options& o, const Text& k, const Text& v) {
         o.communicator.timeout = std::chrono::seconds(number(k, v, 1, 86'400));
       }}};
  return all;
}

} // namespace

std::string strategy_name(StrategyKind kind) {
  for (const auto& [name, one] : kinds())
    if (one == kind)
      return name;
  return "unknown";
}

StrategyOptions parse_strategy(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  if (!(words >> word))
    throw std::invalid_argument("strategy: the text is empty; give one of its names first, e.g. "
                                "\"mirrored replicas=2\"");
  StrategyOptions options;
  options.kind = choice("kind", word, kinds());
  while (words >> word) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    const auto found = setters().find(key);
    if (equals == std::string::npos)
      refuse("key", key, "has no value; write key=value");
    if (found == setters().end())
      refuse("key", key, "is none of " + names_of(setters()));
    found->second(options, key, word.substr(equals + 1));
  }
  return options;
}

int replicas_in_sync(const StrategyOptions& options, int num_replicas) {
  const auto require = [&](bool held, const std::string& message) {
    if (!held)
      throw std::invalid_argument("strategy " + strategy_name(options.kind) + ": " + message);
  };
  const auto replicas = std::to_string(num_replicas);
  switch (options.kind) {
  case StrategyKind::one_device:
    require(num_replicas == 1, replicas + " replicas are too many; use mirrored, or multi_worker");
    return 1;
  case StrategyKind::parameter_server:
    return 1;
  case StrategyKind::sync_groups:
    require(options.sync_groups >= 1 && num_replicas % options.sync_groups == 0,
            replicas + " replicas cannot be split evenly over sync_groups "
                + std::to_string(options.sync_groups));
    return num_replicas / options.sync_groups;
  case StrategyKind::backup_workers:
    require(options.backup_workers >= 0 && options.backup_workers < num_replicas,
            "backup_workers " + std::to_string(options.backup_workers)
                + " must be fewer than the replicas, " + replicas);
    return num_replicas - options.backup_workers;
  default:
    return num_replicas;
  }
}

bool has_servers(StrategyKind kind) {
  return kind == StrategyKind::central_storage || kind == StrategyKind::parameter_server
         || kind == StrategyKind::sync_groups || kind == StrategyKind::backup_workers;
}

ParameterServerOptions server_options(const StrategyOptions& options, int num_replicas) {
  if (options.kind == StrategyKind::central_storage)
    return central_storage(num_replicas);
  if (options.kind == StrategyKind::backup_workers)
    return with_backup_workers(num_replicas, options.backup_workers);
  return {.workers = options.kind == StrategyKind::sync_groups ? options.sync_groups : num_replicas,
          .max_staleness = options.max_staleness,
          .max_lead = options.max_lead,
          .staleness_rate = options.staleness_rate};
}

} // namespace troupe::learner
