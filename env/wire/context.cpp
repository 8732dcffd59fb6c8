#include "env/wire/context.hpp"

#include <stdexcept>
#include <string>

#include <zmq.h>

namespace troupe::env::wire {

Context::Context(int io_threads) : handle_(zmq_ctx_new()) {
  if (handle_ == nullptr || zmq_ctx_set(handle_, ZMQ_IO_THREADS, io_threads) != 0) {
    const std::string cause = zmq_strerror(zmq_errno());
    if (handle_ != nullptr)
      zmq_ctx_term(handle_);
    throw std::runtime_error("ZeroMQ with " + std::to_string(io_threads)
                             + " I/O threads: " + cause);
  }
}

Context::~Context() {
  // Interrupted by a signal it would leave sockets half closed.
  while (zmq_ctx_term(handle_) != 0 && zmq_errno() == EINTR) {
  }
}

} // namespace troupe::env::wire
