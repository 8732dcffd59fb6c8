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

#include "env/sockets/bell.hpp"

namespace troupe::env::wire {

/// The allowed peers of one encrypted socket, and the number of refused ones.
struct Admission {
  std::string domain;            // under which ZeroMQ knows the socket
  std::set<std::string> allowed; // public keys
  std::atomic<std::int64_t> strangers = 0;

  /// Calls on_stranger the first time; has no effect after that.
  void tell(const std::string& who);
  void forget(); // call it before anything that on_stranger uses is destroyed

  std::mutex mutex; // guards on_stranger
  std::function<void(const std::string&)> on_stranger;
};

/// The ZAP domain of sockets without keys. If a socket has a domain, ZeroMQ refuses peers that
/// speak a ZMTP older than 3.0. Otherwise, noise from such a peer that is taken for a routing id
/// can end the process if the socket closes at that moment (libzmq 4.3.4, zmtp_engine.cpp,
/// process_routing_id_msg()).
inline constexpr const char* kPlainDomain = "plain";

/// Answers ZeroMQ's authentication requests (ZAP), which ask whether a key may connect, and counts
/// refused connections. Each Context has one, with its own thread.
class ZapHandler {
public:
  explicit ZapHandler(void* zeromq_context); // throws std::runtime_error
  ~ZapHandler();
  ZapHandler(const ZapHandler&) = delete;
  ZapHandler& operator=(const ZapHandler&) = delete;

  /// Guards the socket until it closes. Call it before the socket binds. Any thread.
  std::shared_ptr<Admission> guard(void* socket, std::set<std::string> allowed,
                                   std::function<void(const std::string&)> on_stranger);

private:
  struct Watched {
    void* events = nullptr; // ZeroMQ's socket that reports the events of the guarded socket
    std::shared_ptr<Admission> admission;
  };
  void run(const std::stop_token& stop);
  void answer_question();
  bool take_event(const Watched& watched); // returns false once the guarded socket is closed

  void* context_;
  Bell bell_; // wakes the thread
  void* questions_ = nullptr;
  std::mutex mutex_; // guards all members below
  std::map<std::string, std::weak_ptr<Admission>> by_domain_;
  std::vector<Watched> arrived_; // not yet watched by the thread
  int next_ = 0;
  std::jthread thread_;
};

} // namespace troupe::env::wire
