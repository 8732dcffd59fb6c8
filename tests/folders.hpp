#pragma once

#include <string>

namespace troupe {

/// The path of a file of the checkout, e.g. in_source("env/README.md"). Defined in its own source
/// file: no other object of the tests contains a path of this machine, so checkouts can share
/// compiled objects.
std::string in_source(const std::string& path = "");

/// The path of a file of the build.
std::string in_build(const std::string& path = "");

} // namespace troupe
