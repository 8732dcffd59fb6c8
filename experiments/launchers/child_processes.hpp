#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::experiments::launchers {

/// Child processes, each in its own process group, out of reach of the terminal's signals. They die
/// with this process, however it ends. When one ends, the rest of its group is killed. A thread of
/// this object reads their output. Any thread.
class ChildProcesses {
public:
  using Clock = std::chrono::steady_clock;
  using Id = int;

  struct Start {
    std::vector<std::string> words = {};       // the program's path first
    std::vector<std::string> environment = {}; // "NAME=value", besides this process's own
    bool input = false;                        // written to by write(); else it reads nothing
    /// Each line of standard output and error, on the thread of this object; true: it is one of
    /// End::last_lines. A line of more than 64 KiB comes in pieces. Must not call this object.
    std::function<bool(std::string_view)> line = {};
  };

  struct End {
    bool good = false;    // exit code 0
    int exit_code = -1;   // -1: killed
    std::string how = {}; // "ended with exit code 1", "was killed by signal …"
    std::vector<std::string> last_lines = {}; // the last 20
  };

  ChildProcesses();
  /// Kills what still runs.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Throws std::runtime_error if the system allows no more processes.
  Id start(Start what);

  /// Writes all bytes to its standard input; false if it does not read them by the deadline or has
  /// closed it. One thread at a time for each child.
  bool write(Id child, std::string_view bytes, Clock::time_point deadline);
  void close_input(Id child);

  void send(Id child, int signal) const;
  void kill_group(Id child) const;

  /// Returns its end and forgets the child; nothing if it still runs at the deadline.
  std::optional<End> wait(Id child, Clock::time_point deadline);

private:
  struct Child;
  void work();
  void fork_child(Child& child, const Start& what);
  std::vector<std::shared_ptr<Child>> running() const;
  std::shared_ptr<Child> find(Id child) const;
  static void drain(Child& child, bool to_the_end);
  void collect(Child& child);
  void wake() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Id, std::shared_ptr<Child>> children_;
  struct Request;
  std::deque<Request*> requests_; // the callers wait for them
  Id next_ = 0;
  bool ending_ = false;
  int woken_ = -1; // eventfd
  std::jthread thread_;
};

/// Runs a program to its end, kills it at the deadline, and returns its output with its end.
struct Finished {
  ChildProcesses::End end = {};
  std::vector<std::string> lines = {};
  bool late = false;
};
Finished run_to_end(ChildProcesses& children, ChildProcesses::Start what,
                    ChildProcesses::Clock::time_point deadline);

} // namespace troupe::experiments::launchers
