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

#include "env/wire/descriptor.hpp"

namespace troupe::env::wire {

/// Who may talk to one encrypted socket, and who tried.
struct Admission {
  std::string domain;            // ZeroMQ's name for it
  std::set<std::string> allowed; // public keys
  std::atomic<std::int64_t> strangers = 0;

  /// Calls on_stranger, the first time; afterwards it is never called again.
  void tell(const std::string& who);
  void forget(); // the owner of what on_stranger uses goes

  std::mutex mutex; // of on_stranger
  std::function<void(const std::string&)> on_stranger;
};

/// ZAP's name for sockets without keys. Whose socket has such a name, ZeroMQ lets nobody in that
/// speaks an older ZMTP than 3.0: from such a peer, noise taken for a routing id ends the process
/// (libzmq 4.3.4, zmtp_engine.cpp, process_routing_id_msg()) when the socket closes meanwhile.
inline constexpr const char* kPlainDomain = "plain";

/// Answers ZeroMQ's questions (ZAP) whether a key may connect, and counts the connections that came
/// to nothing. One per Context, with a thread of its own.
class Gatekeeper {
public:
  explicit Gatekeeper(void* zeromq_context); // throws std::runtime_error
  ~Gatekeeper();
  Gatekeeper(const Gatekeeper&) = delete;
  Gatekeeper& operator=(const Gatekeeper&) = delete;

  /// From now on until the socket closes; before it binds. Any thread.
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
