#include "experiments/launchers/local_launcher.hpp"

#include <signal.h>

#include <utility>

#include "experiments/launchers/command_text.hpp"

namespace troupe::experiments::launchers {

using Clock = ChildProcesses::Clock;

LocalLauncher::LocalLauncher(LaunchSettings settings) : settings_(std::move(settings)) {}

std::vector<std::string> LocalLauncher::words(const NodeStart& node) const {
  std::vector<std::string> words{settings_.program.string()};
  words.insert(words.end(), node.arguments.begin(), node.arguments.end());
  return words;
}

void LocalLauncher::start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token&) {
  find_program(settings_.program.string(), "the nodes' program", "name the path of `troupe`");
  for (const NodeStart& node : nodes) {
    std::vector<std::string> environment{"TROUPE_NODE_NAME=" + node.name};
    for (const auto& [name, value] : settings_.environment)
      environment.push_back(name + "=" + value);
    try {
      const auto id = children_.start({.words = words(node),
                                       .environment = std::move(environment),
                                       .line = [this, name = node.name](std::string_view line) {
                                         if (settings_.output)
                                           settings_.output(name, line);
                                         return true;
                                       }});
      running_.emplace_back(id, node);
    } catch (const std::runtime_error& error) {
      ended_.push_back(
          {.node = node.name, .how = std::string("node ") + node.name + ": " + error.what()});
    }
  }
}

std::vector<NodeEnd> LocalLauncher::poll() {
  std::erase_if(running_, [this](const auto& entry) {
    const auto end = children_.wait(entry.first, Clock::now());
    if (end)
      ended_.push_back(node_end(entry.second, words(entry.second), *end));
    return end.has_value();
  });
  return std::exchange(ended_, {});
}

void LocalLauncher::stop(std::chrono::milliseconds grace) {
  const auto deadline = Clock::now() + grace;
  for (const auto& [id, node] : running_)
    children_.send(id, SIGTERM);
  for (const auto& [id, node] : running_) {
    auto end = children_.wait(id, deadline);
    if (!end) {
      end = children_.kill_and_wait(id);
      end->how = "had not exited " + std::to_string(grace.count() / 1000) + " s after SIGTERM and "
                 + end->how;
    }
    ended_.push_back(node_end(node, words(node), *end));
  }
  running_.clear();
}

} // namespace troupe::experiments::launchers
