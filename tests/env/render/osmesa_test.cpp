// A separate program, because a process can use only one OpenGL library.
#include <doctest/doctest.h>

#include "env/golden/golden.hpp"
#include "env/render/gl_context.hpp"
#include "tests/env/golden/recordings.hpp"

// OSMesa leaks a little memory of every context.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libOSMesa";
}

using namespace troupe::env;

TEST_CASE("OSMesa draws the same frames as EGL") {
  try {
    CHECK(gl_of_this_thread(GlBackend::osmesa)->info().software);
  } catch (const std::runtime_error& error) {
    MESSAGE("skipped: " << error.what());
    return;
  }
  for (const char* task : {"cheetah_run", "cartpole_balance", "reacher_easy"}) {
    const GoldenReport report = check_golden(kRecordings, task, {}, GlBackend::osmesa);
    CHECK(report.frames == 2);
    CHECK(report.passed());
  }
}
