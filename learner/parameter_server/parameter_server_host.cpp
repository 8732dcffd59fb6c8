#include "learner/parameter_server/parameter_server_host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/eventfd.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include "learner/parameter_server/parameter_server_host_impl.hpp"

namespace troupe::learner {
namespace {

using env::wire::Message;
using env::wire::Socket;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kNap{1};
constexpr int kMessagesPerTurn = 64;
constexpr std::size_t kMostKinds = 64; // kinds of invalid messages that are logged

env::wire::Descriptor make_wake_fd() {
  env::wire::Descriptor made(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!made)
    throw std::runtime_error(std::string("eventfd: ") + std::strerror(errno));
  return made;
}

env::wire::SocketOptions socket_options(const ParameterServerHostOptions& options) {
  env::wire::SocketOptions made;
  made.max_frame_bytes = kFrameBytes;
  made.max_header_bytes = std::size_t{16} << 20; // enough for a slice with very many segments
  made.max_message_bytes = std::size_t{4} << 30; // enough for the gradient of a whole shard
  made.shared_memory = options.shared_memory;
  made.server_keys = options.keys;
  return made;
}

} // namespace

ParameterServerHost::Impl::Impl(env::wire::Context& context, const ParameterServerHostOptions& o)
    : options((check(o.server), o)),
      wake_fd(make_wake_fd()),
      socket(context, env::wire::SocketType::router, socket_options(o)) {
  if (!options.snapshot.empty() && std::filesystem::exists(options.snapshot))
    go_on_from(options.snapshot);
  endpoint = socket.bind(options.endpoint);
  if (!options.snapshot.empty())
    saver = std::jthread([this](const std::stop_token& stop) { save_on(stop); });
  thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ParameterServerHost::Impl::~Impl() {
  thread.request_stop();
  wake();
  thread.join();
  if (!saver.joinable())
    return;
  saver.request_stop();
  saver.join();
}

void ParameterServerHost::Impl::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd.number(), &one, sizeof one);
}

void ParameterServerHost::Impl::run(const std::stop_token& stop) {
  at::set_num_threads(1);
  Clock::time_point due = Clock::now();
  while (!stop.stop_requested()) {
    socket.wait(std::min(due, Clock::now() + kNap), wake_fd.number());
    for (int i = 0; i < kMessagesPerTurn && !stop.stop_requested(); ++i) {
      Message message;
      const Socket::Received got = socket.try_receive(message);
      if (got == Socket::Received::nothing)
        break;
      try {
        if (got == Socket::Received::oversized)
          drop("a message with a larger header or more frames than allowed");
        else
          handle(std::move(message));
      } catch (const std::exception& e) { // bad_alloc, or thrown by the optimizer
        drop(e.what());
      }
    }
    const auto now = Clock::now();
    tick(now);
    due = Clock::time_point::max();
    {
      const std::scoped_lock lock(mutex);
      for (const auto& [optimizer, one] : servers)
        due = std::min(due, one->server.next_silence_deadline());
    }
    const env::wire::SharedCounters through = socket.shared_counters();
    shared = through.frames_sent + through.frames_received;
    if (socket.strangers() > 0 && logged.insert("strangers").second)
      options.log("parameter server " + endpoint + ": refused a client whose keys do not match");
  }
}

void ParameterServerHost::Impl::tick(Clock::time_point now) {
  std::vector<std::string> words;
  {
    const std::scoped_lock lock(mutex);
    for (const auto& [optimizer, one] : servers) {
      auto more = one->server.drop_silent_workers(now);
      if (!more.empty())
        serve_parked(*one);
      words.insert(words.end(), more.begin(), more.end());
    }
  }
  for (const auto& text : words)
    options.log("parameter server " + endpoint + ": " + text);
}

void ParameterServerHost::Impl::drop(const std::string& why) {
  ++garbage;
  if (logged.size() < kMostKinds && logged.insert(why).second)
    options.log("parameter server " + endpoint + ": dropped " + why);
}

void ParameterServerHost::Impl::handle(Message&& message) {
  std::string why;
  const auto head = decode_envelope(message.header, why);
  if (!head) {
    drop(why);
    return;
  }
  const std::scoped_lock lock(mutex);
  Served* to = served(head->optimizer());
  if (!to || head->worker() >= static_cast<std::uint32_t>(options.server.workers)
      || head->step() < 0 || head->version() < 0
      || head->version() > ParameterServer::kMostVersion) {
    drop("a message of a worker or an optimizer that this server does not serve");
    refuse(*head, message.peer,
           "worker " + std::to_string(head->worker()) + " with optimizer "
               + std::to_string(head->optimizer()) + "; the server has "
               + std::to_string(options.server.workers) + " workers and at most "
               + std::to_string(options.most_optimizers) + " optimizers, from 0");
    return;
  }
  if (head->has_join())
    on_join(*to, *head, message);
  else if (head->has_exchange())
    on_exchange(*to, *head, message);
  else if (head->has_beat())
    on_beat(*to, *head);
  else if (head->has_leave())
    on_leave(*to, *head, message.peer);
  else
    drop("a message that only a server sends");
  serve_parked(*to);
}

ParameterServerHost::ParameterServerHost(env::wire::Context& context,
                                         const ParameterServerHostOptions& options)
    : impl_(std::make_unique<Impl>(context, options)) {}

ParameterServerHost::~ParameterServerHost() = default;

const std::string& ParameterServerHost::endpoint() const {
  return impl_->endpoint;
}

ParameterServerHostCounters ParameterServerHost::counters() const {
  return {.garbage = impl_->garbage,
          .strangers = impl_->socket.strangers(),
          .shared = impl_->shared,
          .snapshots = impl_->snapshots};
}

ParameterServerCounters ParameterServerHost::server_counters(int optimizer) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto at = impl_->servers.find(static_cast<std::uint32_t>(optimizer));
  return at == impl_->servers.end() ? ParameterServerCounters{} : at->second->server.counters();
}

int ParameterServerHost::optimizers() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->servers.empty() ? 0 : static_cast<int>(impl_->servers.rbegin()->first) + 1;
}

bool ParameterServerHost::has_workers(int first) const {
  const std::scoped_lock lock(impl_->mutex);
  return std::any_of(impl_->servers.begin(), impl_->servers.end(), [first](const auto& entry) {
    return entry.second->server.has_workers(first);
  });
}

ParameterServer& ParameterServerHost::Impl::server_of(int optimizer) {
  const auto at = servers.find(static_cast<std::uint32_t>(optimizer));
  if (at == servers.end())
    throw std::invalid_argument("parameter server " + endpoint + ": no worker has connected with "
                                + "optimizer " + std::to_string(optimizer));
  return at->second->server;
}

TensorMap ParameterServerHost::snapshot(int optimizer) const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->server_of(optimizer).snapshot();
}

void ParameterServerHost::replace(int optimizer, const TensorMap& snapshot, std::int64_t load) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->server_of(optimizer).replace(snapshot, load);
}

void ParameterServerHost::save(const std::filesystem::path& path) const {
  impl_->save(path, false);
}

void ParameterServerHost::load(const std::vector<std::filesystem::path>& files) {
  impl_->load(files);
}

std::int64_t ParameterServerHost::version(int optimizer) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto at = impl_->servers.find(static_cast<std::uint32_t>(optimizer));
  return at == impl_->servers.end() ? 0 : at->second->server.version();
}

} // namespace troupe::learner
