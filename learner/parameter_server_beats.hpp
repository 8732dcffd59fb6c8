#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "env/wire/socket.hpp"

namespace troupe::learner {

/// A thread that tells servers every `interval` that a worker lives, while it is set to.
class ParameterServerBeats {
public:
  /// `header`: of the message.
  ParameterServerBeats(env::wire::Context& context, const std::vector<std::string>& endpoints,
                       const env::wire::SocketOptions& options, std::chrono::milliseconds interval,
                       std::string header);

  /// Gives whether it was set before. Any thread.
  bool set(bool beating);

private:
  void run(const std::stop_token& stop, std::vector<env::wire::Socket>& sockets,
           std::chrono::milliseconds interval, const std::string& header);

  std::mutex mutex_;
  bool beating_ = false;
  std::condition_variable_any changed_;
  std::jthread thread_; // last: it uses the above
};

} // namespace troupe::learner
