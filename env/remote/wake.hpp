#pragma once

namespace troupe::env::remote {

/// Ends another thread's Socket::wait(): a file descriptor (eventfd) that becomes readable. Any
/// thread. Throws std::runtime_error when the process has no descriptor left.
class Wake {
public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring(); // for good
  int descriptor() const { return descriptor_; }

private:
  int descriptor_;
};

} // namespace troupe::env::remote
