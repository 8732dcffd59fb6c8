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

/// Child processes, each in its own process group, so that the terminal's signals do not reach
/// them. They die with this process, however it ends. When a child ends, the rest of its group is
/// killed. A thread of this object reads their output. May be called from any thread.
class ChildProcesses {
public:
  using Clock = std::chrono::steady_clock;
  using Id = int;

  struct Start {
    std::vector<std::string> words = {};       // starts with the program's path
    std::vector<std::string> environment = {}; // "NAME=value", added to this process's environment
    bool input = false;                        // write() feeds its standard input; else it is empty
    /// Called with each line of standard output and error, on the thread of this object; must not
    /// call this object. Returns true to keep the line in End::last_lines. Lines longer than 64 KiB
    /// arrive in pieces.
    std::function<bool(std::string_view)> line = {};
  };

  struct End {
    bool good = false;    // whether the exit code is 0
    int exit_code = -1;   // -1: killed
    std::string how = {}; // "ended with exit code 1", "was killed by signal …"
    std::vector<std::string> last_lines = {}; // at most 20
  };

  ChildProcesses();
  /// Kills the children that are still running.
  ~ChildProcesses();
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Throws std::runtime_error if the system allows no more processes.
  Id start(Start what);

  /// Writes all bytes to the child's standard input. Returns false if the child does not read them
  /// by the deadline or has closed its input. Only one thread at a time may write to
  /// a child.
  bool write(Id child, std::string_view bytes, Clock::time_point deadline);
  void close_input(Id child);

  void send(Id child, int signal) const;
  void kill_group(Id child) const;

  /// Returns the child's end and forgets the child; nothing if it is still running at the deadline.
  std::optional<End> wait(Id child, Clock::time_point deadline);
  /// Kills the group of a child that is not forgotten yet, and waits until the child has ended.
  End kill_and_wait(Id child);

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
  std::deque<Request*> requests_; // their callers wait until they are handled
  Id next_ = 0;
  bool ending_ = false;
  int woken_ = -1; // eventfd
  std::jthread thread_;
};

/// The end and the output of a program. run_to_end() runs it, and kills it at the deadline.
struct Finished {
  ChildProcesses::End end = {};
  std::vector<std::string> lines = {};
  bool late = false;
};
Finished run_to_end(ChildProcesses& children, ChildProcesses::Start what,
                    ChildProcesses::Clock::time_point deadline);

} // namespace troupe::experiments::launchers
