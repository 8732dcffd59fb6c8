#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "env/classic/classic.hpp"
#include "env/goals/goals.hpp"
#include "env/gym/gym.hpp"
#include "env/make/make.hpp"
#include "env/make/task_options.hpp"
#include "env/minatar/minatar.hpp"
#include "env/nearest_names.hpp"
#include "env/plugin/own_environments.hpp"
#include "env/remote/remote_environment.hpp"
#include "env/suite/suite_environment.hpp"

namespace troupe::env {

namespace {

const std::string kRemoteTask = "remote";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse_unknown(const std::string& task) {
  std::string message = "task: '" + task + "' is not a known task; nearest:";
  for (const std::string& other : nearest_names(task, environment_names()))
    message += " '" + other + "'";
  throw std::invalid_argument(
      message + " (`troupe list environments` prints all; a task of your own needs its plugin)");
}

std::chrono::milliseconds milliseconds(const Options& options, const char* key,
                                       std::chrono::milliseconds otherwise) {
  const double seconds = options.number(key, static_cast<double>(otherwise.count()) / 1000);
  if (!(seconds > 0 && seconds <= 86400))
    throw std::invalid_argument("options: " + std::string(key) + " is " + std::to_string(seconds)
                                + "; it must be above 0 and at most 86400 seconds");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000 + 0.5));
}

RemoteOptions remote_deadlines(const Options& options) {
  RemoteOptions remote;
  remote.connect_deadline = milliseconds(options, "connect_seconds", remote.connect_deadline);
  remote.deadline = milliseconds(options, "deadline_seconds", remote.deadline);
  return remote;
}

std::unique_ptr<Environment> make_remote_task(const Options& options) {
  RemoteOptions remote = remote_deadlines(options);
  remote.endpoint = options.text("endpoint", "");
  remote.silence = milliseconds(options, "silence_seconds", remote.silence);
  remote.allow_other_hosts = options.flag("allow_other_hosts", remote.allow_other_hosts);
  const std::string own = options.text("secret_key", ""), server = options.text("server_key", "");
  if (own.empty() != server.empty())
    throw std::invalid_argument(std::string("options: task \"remote\" has ")
                                + (own.empty() ? "server_key" : "secret_key") + " and no "
                                + (own.empty() ? "secret_key" : "server_key")
                                + "; encryption needs both files");
  if (!own.empty())
    remote.keys = wire::read_client_keys(own, server);
  if (remote.endpoint.empty())
    throw std::invalid_argument("options: task \"remote\" needs the address of its peer, e.g. "
                                "options: \"endpoint=tcp://127.0.0.1:5555\"");
  check_all_asked(options, "task remote");
  return guard(make_remote(remote), "environment at " + remote.endpoint);
}

} // namespace

std::unique_ptr<Environment> make_task(const std::string& task, const std::string& models) {
  return std::make_unique<SuiteEnvironment>(find_task(task), models);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names = task_names();
  for (const auto& more :
       {classic_names(), goal_task_names(), gym_names(), minatar_names(), linked_environments()})
    names.insert(names.end(), more.begin(), more.end());
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_environment(const std::string& task) {
  if (task == kRemoteTask || contains(environment_names(), task))
    return true;
  try {
    find_task(task);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

std::chrono::milliseconds own_deadlines(const EnvironmentConfig& config) {
  if (config.task != kRemoteTask || !config.plugin.empty())
    return {};
  const RemoteOptions remote = remote_deadlines(parse_options(config.options));
  return remote.connect_deadline + config.action_repeat * remote.deadline;
}

std::unique_ptr<Environment> make_bare(const EnvironmentConfig& config) {
  const Options options = parse_options(config.options);
  if (!config.plugin.empty())
    return make_plugin(config.plugin, config.task, options);
  if (auto own = make_linked(config.task, options))
    return own;
  if (config.task == kRemoteTask)
    return make_remote_task(options);
  if (contains(classic_names(), config.task))
    return make_classic(config.task, {options.pairs().begin(), options.pairs().end()});
  if (contains(goal_task_names(), config.task))
    return make_goal_task(config.task, {options.pairs().begin(), options.pairs().end()});
  if (contains(minatar_names(), config.task))
    return make_minatar(config.task, {options.pairs().begin(), options.pairs().end()});
  if (contains(gym_names(), config.task)) {
    GymOptions gym{.models = config.models};
    gym.values.insert(options.pairs().begin(), options.pairs().end());
    return make_gym(config.task, gym);
  }
  if (!is_environment(config.task))
    refuse_unknown(config.task);
  if (!options.pairs().empty())
    throw std::invalid_argument("options: "
                                + option_problem(config.task, options.pairs().front().first));
  return make_task(config.task, config.models);
}

} // namespace troupe::env
