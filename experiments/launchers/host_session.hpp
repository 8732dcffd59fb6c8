#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/host_files.hpp"
#include "experiments/launchers/ssh_launcher.hpp"

namespace troupe::experiments::launchers {

/// A node on one host, controlled through one ssh process. Call start() on one thread; afterwards
/// any thread may call the functions.
///
/// The shell at the other end (host_script.hpp) reads commands line by line. Its answers begin with
/// a random word chosen for this session; all other lines are output of the node or of ssh.
class HostSession : public std::enable_shared_from_this<HostSession> {
public:
  HostSession(ChildProcesses& children, const LaunchSettings& settings, const SshSettings& ssh,
              NodeStart node);

  /// Copies missing files and starts the node. Returns false on failure, or once `ended` is
  /// requested; end() then gives the reason.
  bool start(const HostFiles& files, const std::stop_token& ended);

  /// Sends a heartbeat.
  void beat();

  /// Asks the node to stop and kills it after `grace`. end() reports its end.
  void stop(std::chrono::milliseconds grace);

  /// Kills ssh; the shell on the host then stops the node.
  void hang_up();

  /// Returns the end of the node or of the connection to it, once; nothing if neither has ended by
  /// the deadline.
  std::optional<NodeEnd> end(ChildProcesses::Clock::time_point deadline);

  /// Whether the host's shell has not confirmed that it removed everything.
  bool may_have_left_something() const;

  /// Kills and removes what is left on the host, through another connection. Returns an error
  /// message; empty on success.
  std::string clean_up(ChildProcesses::Clock::time_point deadline);

  const NodeStart& node() const { return node_; }

private:
  using Clock = ChildProcesses::Clock;
  struct Failure {
    std::string what;
  };
  std::vector<std::string> command() const;
  bool take_line(std::string_view line);
  std::string answer(Clock::time_point deadline, const std::string& doing);
  void tell(std::string_view bytes, Clock::time_point deadline, const std::string& doing);
  std::vector<bool> copy_missing(const HostFiles& files, Clock::time_point deadline);
  void copy(const HostFile& file, Clock::time_point deadline);
  void run(const HostFiles& files, const std::vector<bool>& copied, Clock::time_point deadline);

  ChildProcesses& children_;
  const LaunchSettings& settings_;
  const SshSettings& ssh_;
  const NodeStart node_;
  const std::string word_;
  ChildProcesses::Id id_ = 0;
  std::string problem_; // the reason why start() failed
  mutable std::mutex mutex_;
  std::condition_variable answered_;
  std::deque<std::string> answers_;
  std::string folder_;
  bool removed_ = false;
};

} // namespace troupe::experiments::launchers
