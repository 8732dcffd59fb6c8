#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "env/sockets/descriptor.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "learner/parameter_server/parameter_wire.hpp"

namespace troupe::learner {

struct ParameterServerHost::Impl {
  /// A worker that is waiting for parameters.
  struct Parked {
    std::string peer;
    wire::Envelope head; // its last message's envelope, without the body
  };

  struct Served {
    Served(const ParameterServerHostOptions& options, ParameterServer::Time now)
        : server(options.server, now, options.make_optimizer) {}
    ParameterServer server;
    std::map<int, Parked> parked; // by worker
    at::Tensor gradient;          // buffer for arriving gradients
    std::int64_t saved = -1;      // version in the last snapshot
  };

  Impl(env::wire::Context& context, const ParameterServerHostOptions& o);
  ~Impl();

  // The loop, in parameter_server_host.cpp.
  void run(const std::stop_token& stop);
  void tick(ParameterServer::Time now);
  void wake() const;
  void drop(const std::string& why);
  void handle(env::wire::Message&& message);

  // The workers' requests, in parameter_server_requests.cpp.
  Served* served(std::uint32_t optimizer);
  ParameterServer& server_of(int optimizer); // throws if no worker has connected with it
  void on_join(Served& to, const wire::Envelope& head, const env::wire::Message& message);
  void on_exchange(Served& to, const wire::Envelope& head, const env::wire::Message& message);
  void on_beat(Served& to, const wire::Envelope& head);
  void on_state(Served& to, const wire::Envelope& head, bool resting);
  void on_leave(Served& to, const wire::Envelope& head, const std::string& peer);
  std::string begin(Served& to, const wire::Envelope& head, const ServedSlice& slice,
                    const env::wire::Message& message) const;
  void respond(Served& to, const wire::Envelope& head, const std::string& peer);
  void refuse(const wire::Envelope& head, const std::string& peer, const std::string& reason);
  void need(const wire::Envelope& head, const std::string& peer, wire::Answer::Need what,
            const std::string& why);
  void send(wire::Envelope&& answer, const std::string& peer,
            std::vector<env::wire::Frame> frames = {});
  void serve_parked(Served& to);

  // Snapshots, in parameter_server_files.cpp.
  void go_on_from(const std::filesystem::path& path); // keeps the former workers
  void load(const std::vector<std::filesystem::path>& files);
  void restore(std::uint32_t optimizer, const TensorMap& tensors,
               const std::filesystem::path& path);
  void save_on(const std::stop_token& stop);
  void save_changes(); // to the snapshot, with saving_mutex locked
  void save(const std::filesystem::path& path, bool only_changes);

  ParameterServerHostOptions options;
  env::wire::Descriptor wake_fd;
  env::wire::Socket socket;
  std::string endpoint;
  mutable std::mutex mutex; // guards `servers`
  std::map<std::uint32_t, std::unique_ptr<Served>> servers;
  std::set<std::string> logged;
  std::atomic<std::int64_t> garbage = 0;
  std::atomic<std::int64_t> shared = 0;
  std::atomic<std::int64_t> snapshots = 0;
  std::condition_variable_any saving; // wakes the saver at the end
  std::mutex saving_mutex;            // held while the snapshot is written
  bool failing = false;               // the last snapshot was not written; guarded by saving_mutex
  std::jthread saver;
  std::jthread thread; // last, because the threads use all members above
};

} // namespace troupe::learner
