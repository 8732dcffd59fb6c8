#include "learner/parameter_server/parameter_server_beats.hpp"

#include <utility>

namespace troupe::learner {

ParameterServerBeats::ParameterServerBeats(env::wire::Context& context,
                                           const std::vector<std::string>& endpoints,
                                           const env::wire::SocketOptions& options,
                                           std::chrono::milliseconds interval, Header header) {
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

void ParameterServerBeats::set_progress(std::vector<Progress> progress) {
  const std::scoped_lock lock(mutex_);
  progress_ = std::move(progress);
}

void ParameterServerBeats::set_resting(bool resting) {
  const std::scoped_lock lock(mutex_);
  resting_ = resting;
}

void ParameterServerBeats::run(const std::stop_token& stop, std::vector<env::wire::Socket>& sockets,
                               std::chrono::milliseconds interval, const Header& header) {
  bool resting = false;
  std::vector<Progress> progress;
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, stop, interval, [] { return false; });
      if (!beating_)
        continue;
      resting = resting_;
      progress = progress_;
    }
    progress.resize(sockets.size());
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      env::wire::Message message;
      message.header = header(progress[i].step, progress[i].version, resting);
      // If the queue is full, this beat is lost; a later one gets through.
      sockets[i].send(std::move(message), std::chrono::steady_clock::now());
    }
  }
}

} // namespace troupe::learner
