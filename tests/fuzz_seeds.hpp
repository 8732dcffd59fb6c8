#pragma once

#include <string>
#include <vector>

namespace troupe {

/// Defined by a fuzz target: honest inputs, made by the encoder of its format or written as text.
/// A target may leave it out and have only the files in tests/fuzz_seeds/. fuzz.py passes the first
/// 4096 bytes of each.
[[gnu::weak]] std::vector<std::string> fuzz_seeds();

/// What a target returns that knows whether it accepted its input. Its test fails if it refuses one
/// of fuzz_seeds(), which then reaches less than it should.
inline int fuzz_result([[maybe_unused]] bool accepted) {
#ifdef TROUPE_LIBFUZZER
  return 0; // libFuzzer forgets inputs for which a target returns -1
#else
  return accepted ? 0 : -1;
#endif
}

} // namespace troupe
