#include "env/wire/context.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include <zmq.h>

#include "env/wire/zap_handler.hpp"

namespace troupe::env::wire {

Context::Context(int io_threads, std::shared_ptr<const DeploymentKeys> keys)
    : keys_(std::move(keys)), handle_(zmq_ctx_new()) {
  if (handle_ == nullptr || zmq_ctx_set(handle_, ZMQ_IO_THREADS, io_threads) != 0) {
    const std::string cause = zmq_strerror(zmq_errno());
    if (handle_ != nullptr)
      zmq_ctx_term(handle_);
    throw std::runtime_error("ZeroMQ with " + std::to_string(io_threads)
                             + " I/O threads: " + cause);
  }
}

Context::~Context() {
  zap_handler_.reset(); // its sockets would block zmq_ctx_term
  // A signal must not interrupt the termination, or sockets would stay half closed.
  while (zmq_ctx_term(handle_) != 0 && zmq_errno() == EINTR) {
  }
}

ZapHandler& Context::zap_handler() {
  const std::lock_guard lock(mutex_);
  if (!zap_handler_)
    zap_handler_ = std::make_unique<ZapHandler>(handle_);
  return *zap_handler_;
}

std::string zeromq_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  zmq_version(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

bool zeromq_encrypts() {
  return zmq_has("curve") == 1;
}

} // namespace troupe::env::wire
