#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "env/wire/socket.hpp"

namespace troupe::learner {

/// Sends a worker's heartbeat to the servers every `interval` while enabled, on a separate thread.
class ParameterServerBeats {
public:
  /// Makes the header of a heartbeat message, which contains the last step that the server has
  /// answered, the version of those parameters, and whether the worker is suspended.
  using Header = std::function<std::string(std::int64_t step, std::int64_t version, bool resting)>;

  ParameterServerBeats(env::wire::Context& context, const std::vector<std::string>& endpoints,
                       const env::wire::SocketOptions& options, std::chrono::milliseconds interval,
                       Header header);

  /// Enables or disables the heartbeat and returns whether it was enabled. Any thread may call it.
  bool set(bool beating);
  void set_resting(bool resting); // any thread
  /// The last step that a server has answered, and the version of the parameters in that answer.
  struct Progress {
    std::int64_t step = 0;
    std::int64_t version = 0;
  };
  void set_progress(std::vector<Progress> progress); // [server]; any thread

private:
  void run(const std::stop_token& stop, std::vector<env::wire::Socket>& sockets,
           std::chrono::milliseconds interval, const Header& header);

  std::mutex mutex_; // guards the next three members
  bool beating_ = false;
  bool resting_ = false;
  std::vector<Progress> progress_; // [server]
  std::condition_variable_any changed_;
  std::jthread thread_; // last, because it uses the members above
};

} // namespace troupe::learner
