#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "actors/remoting/cluster_keys.hpp"

typedef struct ssl_ctx_st SSL_CTX; // OpenSSL's; declared here to keep its headers out
typedef struct ssl_st SSL;

namespace troupe::actors {

/// What this process presents and trusts in TLS 1.3: its certificate and its authority. Reads the
/// keys once; later changes to the files have no effect. Any thread.
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

/// One encrypted connection over a non-blocking socket, which it does not own. Never raises
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
  std::size_t pending() const; // bytes that read() can return without reading the socket
  bool has_received() const;   // whether the peer has sent anything

  /// Returns why the last call failed, for example "certificate has expired".
  const std::string& why() const { return why_; }

private:
  struct Free {
    void operator()(SSL* it) const;
  };
  State state_of(int result);

  std::unique_ptr<SSL, Free> handle_;
  std::string why_;
};

/// Waits until the socket is ready for what `state` wants. Returns false if the deadline passes
/// first.
bool wait_for_socket(int socket, TlsSession::State state,
                     std::chrono::steady_clock::time_point deadline);

} // namespace troupe::actors
