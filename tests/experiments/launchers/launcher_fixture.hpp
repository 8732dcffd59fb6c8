#pragma once

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "experiments/launchers/launcher.hpp"
#include "tests/eventually.hpp"
#include "tests/folders.hpp"

namespace troupe::experiments::launchers {

/// The output of the nodes, and how they ended.
class Watched {
public:
  static constexpr std::chrono::seconds kDeadline{60};

  LaunchSettings
  settings(const std::string& program = in_build("tests/experiments/launchers/stand_in_node")) {
    return {.program = program, .output = [this](const std::string& node, std::string_view line) {
              const std::lock_guard lock(mutex_);
              text_ += node + ": " + std::string(line) + "\n";
              said_.notify_all();
            }};
  }

  /// Waits until the output, as lines "node: line", contains `part` at least `times` times.
  bool says(const std::string& part, int times = 1) {
    std::unique_lock lock(mutex_);
    return said_.wait_for(lock, kDeadline, [&] {
      std::size_t at = 0;
      for (int i = 0; i < times; ++i)
        if (at = text_.find(part, at + (i > 0 ? 1 : 0)); at == std::string::npos)
          return false;
      return true;
    });
  }

  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

  /// The number after the last "NODE: NODE on HOST, process ".
  std::string process(const std::string& node) {
    const std::string all = text();
    const std::size_t at = all.find("process ", all.rfind(node + ": " + node + " on "));
    return at == std::string::npos ? "" : std::to_string(std::stol(all.substr(at + 8)));
  }

  /// Polls until `count` nodes have ended.
  std::map<std::string, NodeEnd> ends(Launcher& launcher, std::size_t count) {
    std::map<std::string, NodeEnd> ends;
    testing::comes_true(
        [&] {
          for (NodeEnd& end : launcher.poll())
            ends[end.node] = end;
          return ends.size() >= count;
        },
        kDeadline);
    return ends;
  }

private:
  std::mutex mutex_;
  std::condition_variable said_;
  std::string text_;
};

/// The output of a bash command.
inline std::string shell(const std::string& command) {
  std::FILE* pipe = ::popen(("exec bash -c '" + command + "' 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> bytes{};
  for (std::size_t count = 0; (count = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), count);
  ::pclose(pipe);
  return text;
}

/// Waits until the command prints `expected`; false after the deadline.
inline bool comes_to(const std::string& command, const std::string& expected) {
  std::string said;
  const bool came =
      testing::comes_true([&] { return (said = shell(command)) == expected; }, Watched::kDeadline);
  if (!came)
    MESSAGE(command << " says: " << said);
  return came;
}

inline std::string on_hosts(const std::string& command) {
  return "set -e; source " + in_source("tests/cluster/host_tools.sh; ") + command;
}

} // namespace troupe::experiments::launchers
