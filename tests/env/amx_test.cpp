#include "env/amx.hpp"

#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/scoped_variable.hpp"

using namespace troupe;

TEST_CASE("A trial in a child process succeeds only if it returns true") {
  CHECK(env::succeeds_in_child([] { return true; }));
  CHECK(!env::succeeds_in_child([] { return false; }));
  CHECK(!env::succeeds_in_child([]() -> bool { __builtin_trap(); })); // an illegal instruction
}

TEST_CASE("A limit of oneDNN's instructions that is set stays as it is") {
  const ScopedVariable set("ONEDNN_MAX_CPU_ISA", "AVX2");
  env::avoid_broken_amx();
  CHECK(std::getenv("ONEDNN_MAX_CPU_ISA") == std::string("AVX2"));
}

TEST_CASE("Without AMX, oneDNN's instructions are not limited") {
  if (env::announces_amx()) {
    MESSAGE("skipped: this processor announces AMX");
    return;
  }
  const ScopedVariable unset("ONEDNN_MAX_CPU_ISA", std::nullopt);
  env::avoid_broken_amx();
  CHECK(std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr);
}
