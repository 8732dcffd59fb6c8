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

/// A thread that sends servers a worker's heartbeat every `interval` while enabled.
class ParameterServerBeats {
public:
  /// The header of a message that says so: after the worker's step, with parameters of the server's
  /// version, whether it rests.
  using Header = std::function<std::string(std::int64_t step, std::int64_t version, bool resting)>;

  ParameterServerBeats(env::wire::Context& context, const std::vector<std::string>& endpoints,
                       const env::wire::SocketOptions& options, std::chrono::milliseconds interval,
                       Header header);

  /// Gives whether it was set before. Any thread.
  bool set(bool beating);
  void set_resting(bool resting); // any thread
  /// The worker has made this step and has parameters of these versions, [server]. Any thread.
  void set_step(std::int64_t step, std::vector<std::int64_t> versions);

private:
  void run(const std::stop_token& stop, std::vector<env::wire::Socket>& sockets,
           std::chrono::milliseconds interval, const Header& header);

  std::mutex mutex_; // of the next four
  bool beating_ = false;
  bool resting_ = false;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> versions_; // [server]
  std::condition_variable_any changed_;
  std::jthread thread_; // last: it uses the above
};

} // namespace troupe::learner
