#pragma once

#include <string>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

/// A non-blocking stream socket that listens at "tcp://<address>:<port>" (* for any address or any
/// free port) or "ipc://<path>" (ipc://@<name>: an abstract name, without a file).
///
/// It takes over a path only if a socket is there that no process serves any more. It leaves the
/// socket of a live server and files of other kinds alone. The destructor removes the file if it is
/// still the object's own.
class Listener {
public:
  /// Throws std::runtime_error with the cause and the remedy.
  explicit Listener(const std::string& endpoint);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const std::string& endpoint() const { return endpoint_; } // with the port
  int number() const { return socket_.number(); }
  bool is_tcp() const { return path_.empty() && !is_abstract_; }

private:
  void listen_tcp(const std::string& address);
  void listen_path(const std::string& path);
  [[noreturn]] void fail(int error, const std::string& way_out) const;
  [[noreturn]] void fail_in_use() const;

  std::string endpoint_;
  Descriptor socket_;
  bool is_abstract_ = false;
  std::string path_;
  unsigned long long device_ = 0;
  unsigned long long inode_ = 0;
};

} // namespace troupe::env::wire
