#pragma once

namespace troupe::env::remote {

/// Ends another thread's Socket::wait(). Its file descriptor (eventfd) becomes readable when it
/// rings. Any thread may ring it. Throws std::runtime_error if the process has no descriptors left.
class Wake {
public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring(); // permanent
  int descriptor() const { return descriptor_; }

private:
  int descriptor_;
};

} // namespace troupe::env::remote
