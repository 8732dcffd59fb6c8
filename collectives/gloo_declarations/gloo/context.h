#pragma once
// LibTorch's wheel carries Gloo inside libtorch_cpu.so and none of Gloo's headers. These are
// declarations, in the layout its ABI has, of the names that c10d's ProcessGroupGloo.hpp mentions;
// everything is defined inside libtorch_cpu.so. Debian's libgloo must never be linked beside it.
#include <chrono>
#include <memory>

namespace gloo {

class Context {
public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class Device;
class UnboundBuffer {
public:
  virtual ~UnboundBuffer() = 0;
};
} // namespace transport

} // namespace gloo
