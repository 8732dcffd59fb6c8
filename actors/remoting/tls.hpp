#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"

typedef struct ssl_ctx_st SSL_CTX; // of OpenSSL, which this header keeps out
typedef struct ssl_st SSL;

namespace troupe::actors {

/// This process's identity and trust: TLS 1.3, its certificate, its authority. Reads the keys once;
/// later changes of the files have no effect. Any thread.
class TlsContext {
public:
  explicit TlsContext(const ClusterKeys& keys); // throws std::runtime_error
  SSL_CTX* handle() const { return handle_.get(); }

private:
  struct Free {
    void operator()(SSL_CTX* it) const;
  };
  std::unique_ptr<SSL_CTX, Free> handle_;
};

/// One encrypted connection over a non-blocking socket. Does not own the socket; never raises
/// SIGPIPE. One thread at a time.
class TlsSession {
public:
  enum class Side { listens, connects };
  TlsSession(const TlsContext& context, int socket, Side side); // throws std::runtime_error
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  enum class State { done, wants_read, wants_write, failed };
  State handshake();
  State read(void* into, std::size_t size, std::size_t& got);
  State write(const void* from, std::size_t size, std::size_t& sent);
  std::size_t pending() const; // bytes that read() returns without the socket

  /// Why the last call failed: "certificate has expired".
  const std::string& why() const { return why_; }

private:
  struct Free {
    void operator()(SSL* it) const;
  };
  State state_of(int result);

  std::unique_ptr<SSL, Free> handle_;
  std::string why_;
};

/// Waits for what `state` wants, until the deadline; false then.
bool wait_for_socket(int socket, TlsSession::State state,
                     std::chrono::steady_clock::time_point deadline);

} // namespace troupe::actors
