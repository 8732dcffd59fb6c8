#pragma once

#include <string>
#include <vector>

namespace troupe {

/// Defined by a fuzz target: honest inputs, made by the encoder of its format or written as text.
/// A target may leave it out and have only the files in tests/fuzz_seeds/.
[[gnu::weak]] std::vector<std::string> fuzz_seeds();

} // namespace troupe
