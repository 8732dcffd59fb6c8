#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::experiments::commands {

/// One life of a run's head in a process of its own.
struct HeadLife {
  int restarts = 0;               // before this life
  std::filesystem::path run = {}; // of the life before; empty: that had none yet
  std::string end = {};           // of the life before: "was killed by signal 9 (Killed)"
  int watch = -1;                 // where begin() writes to; -1: it is not watched

  /// The run before goes on: it has a complete checkpoint.
  bool goes_on() const;
  /// For the log: what happened to the life before; "" for the first.
  std::string note() const;
  /// This life works in `folder`, and may be restarted so often within so many minutes.
  void begin(const std::filesystem::path& folder, int allowed_restarts, double minutes) const;
};

/// Runs `head` in a child process, and in another one with the next life whenever a signal has
/// killed that: at once, then after growing delays. What the dead head had started is killed first.
/// Passes SIGINT, SIGTERM, SIGTSTP and SIGCONT on to the child, which dies with this process.
/// Returns, or throws, in the child what `head` does; in this process the child's exit code.
/// Throws std::runtime_error when the restarts are used up, the child died before it began, or a
/// signal ended the run while the head was dead. A process that has several threads already cannot
/// be forked safely: `head` runs in it, unwatched.
int watch_head(const std::function<int(const HeadLife&)>& head);

} // namespace troupe::experiments::commands
