#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

/// The allowed peers of one encrypted socket, and a count of the refused ones.
struct Admission {
  std::string domain;            // ZeroMQ's name for it
  std::set<std::string> allowed; // public keys
  std::atomic<std::int64_t> strangers = 0;

  /// Calls on_stranger the first time; later calls do nothing.
  void tell(const std::string& who);
  void forget(); // before the owner of what on_stranger uses ends

  std::mutex mutex; // of on_stranger
  std::function<void(const std::string&)> on_stranger;
};

/// ZAP's domain of sockets without keys. With a domain ZeroMQ refuses peers that speak an older
/// ZMTP than 3.0: from such a peer, noise taken for a routing id ends the process (libzmq 4.3.4,
/// zmtp_engine.cpp, process_routing_id_msg()) when the socket closes meanwhile.
inline constexpr const char* kPlainDomain = "plain";

/// Handles ZeroMQ's authentication requests (ZAP): may this key connect? Counts refused
/// connections. One per Context, with its own thread.
class ZapHandler {
public:
  explicit ZapHandler(void* zeromq_context); // throws std::runtime_error
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  /// Guards the socket until it closes; to be called before it binds. Any thread.
  std::shared_ptr<Admission> guard(void* socket, std::set<std::string> allowed,
                                   std::function<void(const std::string&)> on_stranger);

private:
  struct Watched {
    void* events = nullptr; // ZeroMQ's socket with the events of the guarded one
    std::shared_ptr<Admission> admission;
  };
  void run(const std::stop_token& stop);
  void ring() const;
  void answer_question();
  bool take_event(const Watched& watched); // false: the guarded socket is closed

  void* context_;
  void* questions_ = nullptr;
  Descriptor bell_;
  std::mutex mutex_; // of all below
  std::map<std::string, std::weak_ptr<Admission>> by_domain_;
  std::vector<Watched> arrived_; // for the thread to watch
  int next_ = 0;
  std::jthread thread_;
};

} // namespace troupe::env::wire
