#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// Runs this program with other arguments in a separate process group, out of reach of the
/// terminal's signals. The child gets SIGTERM when this process dies. One thread.
class RunProcess {
public:
  /// Standard output goes to a new file `output`, standard error to the end of `errors`; there is
  /// no standard input. Throws std::runtime_error naming what failed.
  RunProcess(const std::vector<std::string>& arguments, const std::filesystem::path& output,
             const std::filesystem::path& errors);
  /// Kills it if it still runs.
  ~RunProcess();
  RunProcess(const RunProcess&) = delete;
  RunProcess& operator=(const RunProcess&) = delete;

  /// Readable once it has ended: for poll().
  int ended() const { return ended_; }
  void send(int signal) const;

  /// Waits for its end: "" after exit code 0, else "ended with exit code 1" or "was killed by
  /// signal 9 (Killed)".
  std::string wait();

private:
  pid_t process_ = -1;
  int ended_ = -1; // pidfd
};

/// The last line of a file that is not empty; "" when there is none.
std::string last_line(const std::filesystem::path& file);

} // namespace troupe::experiments::commands
