#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::experiments::commands {

/// One life of a run's head: one process of the sequence that watch_head() starts.
struct HeadLife {
  int restarts = 0;               // number of lives before this one
  std::filesystem::path run = {}; // run folder of the previous life; empty: it had none yet
  std::string end = {};           // how the previous life ended: "was killed by signal 9 (Killed)"
  int watch = -1;                 // descriptor that begin() writes to; -1: not watched
  int keeper = 0;                 // the process that watches this one; 0: none
  int starter = -1;               // socket to the process of watch_head()'s `starter`; -1: none

  /// Whether the previous run can continue: it has a complete checkpoint or can be taken over.
  bool goes_on() const;
  /// Whether the run's processes may still be alive: the dead head left a record of them.
  bool takes_over() const;
  /// What happened to the previous life, for the log; "" in the first life.
  std::string note() const;
  /// Reports that this life works in `folder`, how many restarts it allows within how many minutes,
  /// and for how many seconds its processes wait for another head.
  void begin(const std::filesystem::path& folder, int allowed_restarts, double minutes,
             double patience) const;
};

/// Runs `head` in a child process. If a signal kills the child, runs it again in a new child with
/// the next HeadLife: immediately the first time, then after growing delays. If the next head takes
/// the run over, the processes that the dead head started live on; otherwise they are killed.
/// Processes left over when a head ends are killed. SIGINT, SIGTERM, SIGTSTP and SIGCONT are passed
/// on to the child, which dies with this process.
///
/// In the child, returns or throws what `head` does; in this process, returns the child's exit
/// code. Throws std::runtime_error if the restarts are used up, the child died before it called
/// begin(), or a signal ended the run while the head was dead. A process that already has several
/// threads cannot be forked safely: `head` then runs in this process, unwatched.
///
/// `starter`, if given, runs in another child process, which has the other end of HeadLife::starter
/// (a datagram socket). It outlives a head only if the next head takes the run over.
int watch_head(const std::function<int(const HeadLife&)>& head,
               const std::function<void(int socket)>& starter = {});

/// The signal that a process of a watched head receives when its parent ends.
extern const int kParentEnded;

/// Called in a process that a watched head started. The process then outlives that head, but not
/// `keeper`, which watches the head and becomes the process's parent. From then on its output is
/// appended to `log`.
void outlive_head(int keeper, const std::filesystem::path& log);

} // namespace troupe::experiments::commands
