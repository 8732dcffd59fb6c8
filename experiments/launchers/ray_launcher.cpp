#include "experiments/launchers/ray_launcher.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "experiments/launchers/command_text.hpp"

namespace troupe::experiments::launchers {
namespace {

using Clock = ChildProcesses::Clock;
constexpr std::string_view kRayWord = "troupe-ray ";
constexpr std::chrono::milliseconds kRayLook{50}; // between checks whether the program has ended
constexpr std::chrono::seconds kRayWrite{10};     // time limit for the program to read a command
constexpr std::chrono::seconds kRayBeyond{15};    // beyond the program's own limit
constexpr std::chrono::seconds kRayGoodBye{30};   // time for the program to end the actors

/// Removes the first word from `text` and returns it.
std::string_view next_word(std::string_view& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

} // namespace

RayLauncher::RayLauncher(LaunchSettings settings, RaySettings ray)
    : settings_(std::move(settings)), ray_(std::move(ray)) {
  ray_.python = find_program(ray_.python, "ray.python", "name a Python that has the package ray");
  if (ray_.program.empty())
    ray_.program = settings_.program.string();
  words_ = {ray_.python, "-c", kRayNodes, ray_.address};
}

RayLauncher::~RayLauncher() {
  stop(std::chrono::milliseconds(0));
}

bool RayLauncher::take_line(std::string_view line) {
  if (line.starts_with(kRayWord))
    return take_word(line.substr(kRayWord.size()));
  if (settings_.output)
    settings_.output("ray", line);
  return true;
}

/// Handles "started NAME HOST", "line NAME TEXT", "ended NAME CODE", "lost NAME REASON" or "failed
/// REASON".
bool RayLauncher::take_word(std::string_view text) {
  const std::string_view what = next_word(text);
  if (what == "failed") {
    const std::lock_guard lock(mutex_);
    problem_ = text;
    return true;
  }
  const std::string name(next_word(text));
  if (what == "line" && settings_.output)
    settings_.output(name, text);
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(name);
  if (found == nodes_.end())
    return false;
  Node& node = found->second;
  if (what == "started") {
    node.started = true;
    node.start.host = text;
  } else if (what == "line") {
    node.last_line = text;
  } else if (what == "ended") {
    int code = 1;
    std::from_chars(text.data(), text.data() + text.size(), code);
    node.end = shell_end(node.start, code, node.last_line);
  } else if (what == "lost") {
    node.end = {.node = name,
                .how = "node " + name
                       + (node.start.host.empty() ? "" : " (" + node.start.host + ")")
                       + " is lost: " + std::string(text)};
    if (!node.last_line.empty())
      node.end->last_lines = {node.last_line};
  }
  changed_.notify_all();
  return false;
}

std::string RayLauncher::order(const std::vector<NodeStart>& nodes) const {
  auto starts = nlohmann::json::array();
  for (const NodeStart& node : nodes) {
    std::map<std::string, std::string> environment = settings_.environment;
    environment["TROUPE_NODE_NAME"] = node.name;
    std::vector<std::string> words{ray_.program};
    words.insert(words.end(), node.arguments.begin(), node.arguments.end());
    nlohmann::json bundle = {{"CPU", std::max(1, node.cores)}};
    if (node.gpus > 0)
      bundle["GPU"] = node.gpus;
    starts.push_back(
        {{"name", node.name}, {"words", words}, {"environment", environment}, {"bundle", bundle}});
  }
  return nlohmann::json{{"start", starts},
                        {"folder", std::filesystem::current_path().string()},
                        {"strategy", ray_.strategy},
                        {"seconds", static_cast<double>(ray_.start_limit.count()) / 1000}}
             .dump()
         + "\n";
}

/// Waits until all nodes are `done`; false at the deadline, or if the program or the wait has
/// ended.
bool RayLauncher::wait_for(bool (*done)(const Node&), Clock::time_point deadline,
                           const std::stop_token& ended) {
  const auto all = [&] {
    return std::all_of(nodes_.begin(), nodes_.end(),
                       [&](const auto& named) { return done(named.second); });
  };
  while (program_) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_until(lock, std::min(deadline, Clock::now() + kRayLook), all))
        return true;
    }
    if (const auto end = children_.wait(*program_, Clock::now()))
      program_ended(*end);
    else if (Clock::now() >= deadline || ended.stop_requested())
      return false;
  }
  return false;
}

void RayLauncher::program_ended(const ChildProcesses::End& end) {
  program_.reset();
  const std::lock_guard lock(mutex_);
  for (auto& [name, node] : nodes_) {
    if (node.end)
      continue;
    node.end = {
        .node = name,
        .how = "node " + name + ": "
               + (problem_.empty() ? "the program that starts nodes in Ray " + end.how : problem_),
        .last_lines = end.last_lines};
  }
  problem_.clear();
}

void RayLauncher::start_nodes(const std::vector<NodeStart>& nodes, const std::stop_token& ended) {
  if (nodes.empty())
    return;
  {
    const std::lock_guard lock(mutex_);
    for (const NodeStart& node : nodes)
      nodes_[node.name] = {.start = node};
  }
  if (!program_)
    program_ =
        children_.start({.words = words_, .input = true, .line = [this](std::string_view line) {
                           return take_line(line);
                         }});
  const auto deadline = Clock::now() + 2 * ray_.start_limit + kRayBeyond; // bundles, then actors
  if (!children_.write(*program_, order(nodes), Clock::now() + kRayWrite))
    children_.kill_group(*program_);
  if (!wait_for([](const Node& node) { return node.started || node.end.has_value(); }, deadline,
                ended)
      && program_ && !ended.stop_requested()) {
    children_.kill_group(*program_);
    if (const auto end = children_.wait(*program_, Clock::now() + kRayGoodBye))
      program_ended(*end);
  }
}

std::vector<NodeEnd> RayLauncher::poll() {
  if (program_)
    if (const auto end = children_.wait(*program_, Clock::now()))
      program_ended(*end);
  std::vector<NodeEnd> ended;
  const std::lock_guard lock(mutex_);
  std::erase_if(nodes_, [&](auto& named) {
    if (named.second.end)
      ended.push_back(std::move(*named.second.end));
    return named.second.end.has_value();
  });
  return ended;
}

void RayLauncher::stop(std::chrono::milliseconds grace) {
  if (!program_)
    return;
  if (children_.write(*program_, "{\"stop\": true}\n", Clock::now() + kRayWrite)
      && !wait_for([](const Node& node) { return node.end.has_value() || !node.started; },
                   Clock::now() + grace)) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, node] : nodes_)
      if (node.started && !node.end)
        node.end = {.node = name,
                    .how = "node " + name + " (" + node.start.host + ") had not exited "
                           + std::to_string(grace.count() / 1000)
                           + " s after SIGTERM and was killed"};
  }
  if (!program_)
    return;
  children_.close_input(*program_); // it ends the remaining nodes
  const auto end = children_.wait(*program_, Clock::now() + kRayGoodBye);
  program_ended(end ? *end : children_.kill_and_wait(*program_)); // Ray then ends the nodes
}

} // namespace troupe::experiments::launchers
