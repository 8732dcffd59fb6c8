// Contexts and threads, without OpenGL.
#include "env/render/gl_context.hpp"

#include <doctest/doctest.h>

#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

using namespace troupe::env;

namespace {

struct Calls {
  bool can_bind = true;
  int unbound = 0;
};

class FakeContext final : public GlContext {
public:
  FakeContext(Calls& calls, const std::string& backend) : calls_(calls) { info_.backend = backend; }
  ~FakeContext() override { forget(); }

private:
  bool bind() override { return calls_.can_bind; }
  void unbind() override { ++calls_.unbound; }

  Calls& calls_;
};

} // namespace

TEST_CASE("A context is unbound when its thread ends") {
  Calls calls;
  const auto context = std::make_shared<FakeContext>(calls, "fake");
  std::jthread([&] { context->make_current(); }).join();
  CHECK(calls.unbound == 1);
}

TEST_CASE("A thread does not touch its context when another has destroyed it") {
  Calls calls;
  auto context = std::make_shared<FakeContext>(calls, "fake");
  std::latch bound(1);
  std::latch destroyed(1);
  std::jthread thread([&] {
    context->make_current();
    bound.count_down();
    destroyed.wait();
  });
  bound.wait();
  context.reset();
  destroyed.count_down();
  thread.join();
  CHECK(calls.unbound == 0);
}

TEST_CASE("A context that cannot be bound is either new or used by another thread") {
  Calls calls{.can_bind = false};
  CHECK_THROWS_WITH_AS(std::make_shared<FakeContext>(calls, "")->make_current(),
                       doctest::Contains("a new OpenGL context cannot be made current"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(std::make_shared<FakeContext>(calls, "fake")->make_current(),
                       doctest::Contains("(fake) is used by another thread"), std::runtime_error);
}
