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
  int keeper = 0;                 // the process that watches it; 0: none
  int starter = -1;               // socket to the process of watch_head()'s `starter`; -1: none

  /// The run before goes on: it has a complete checkpoint, or can be taken over.
  bool goes_on() const;
  /// Its processes may live, as its head has left a record for them.
  bool takes_over() const;
  /// For the log: what happened to the life before; "" for the first.
  std::string note() const;
  /// This life works in `folder`, and may be restarted so often within so many minutes.
  void begin(const std::filesystem::path& folder, int allowed_restarts, double minutes) const;
};

/// Runs `head` in a child process, and in another one with the next life whenever a signal has
/// killed that: at once, then after growing delays. What the dead head had started lives on if the
/// next one takes it over, and is killed if not; what is left when a head ends is killed. Passes
/// SIGINT, SIGTERM, SIGTSTP and SIGCONT on to the child, which dies with this process.
/// Returns, or throws, in the child what `head` does; in this process the child's exit code.
/// Throws std::runtime_error when the restarts are used up, the child died before it began, or a
/// signal ended the run while the head was dead. A process that has several threads already cannot
/// be forked safely: `head` runs in it, unwatched.
/// `starter`, if given, runs in another child process, which outlives a head that its successor
/// takes over, and no other; it has the other end of HeadLife::starter, a socket of datagrams.
int watch_head(const std::function<int(const HeadLife&)>& head,
               const std::function<void(int socket)>& starter = {});

/// The signal that a process of a watched head gets whenever its parent ends.
extern const int kParentEnded;

/// In a process that a watched head has started: it outlives that head, but not `keeper`, which
/// watches the head and becomes its parent. What it prints then goes to the end of `log`.
void outlive_head(int keeper, const std::filesystem::path& log);

} // namespace troupe::experiments::commands
