#include "learner/parameter_server_beats.hpp"

#include <utility>

namespace troupe::learner {

ParameterServerBeats::ParameterServerBeats(env::wire::Context& context,
                                           const std::vector<std::string>& endpoints,
                                           const env::wire::SocketOptions& options,
                                           std::chrono::milliseconds interval, std::string header) {
  std::vector<env::wire::Socket> sockets;
  for (const auto& endpoint : endpoints) {
    sockets.emplace_back(context, env::wire::SocketType::dealer, options);
    sockets.back().connect(endpoint);
  }
  thread_ =
      std::jthread([this, own = std::move(sockets), interval, header = std::move(header)](
                       const std::stop_token& stop) mutable { run(stop, own, interval, header); });
}

bool ParameterServerBeats::set(bool beating) {
  const std::scoped_lock lock(mutex_);
  return std::exchange(beating_, beating);
}

void ParameterServerBeats::run(const std::stop_token& stop, std::vector<env::wire::Socket>& sockets,
                               std::chrono::milliseconds interval, const std::string& header) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, interval, [] { return false; });
      if (!beating_)
        continue;
    }
    for (auto& socket : sockets) {
      env::wire::Message message;
      message.header = header;
      socket.send(std::move(message),
                  std::chrono::steady_clock::now()); // a full queue: it beats later
    }
  }
}

} // namespace troupe::learner
