#pragma once

#include <string>

namespace troupe {

/// A file of the checkout, e.g. in_source("env/README.md"). In a source of its own: no other object
/// of the tests names a folder of this machine, so checkouts share what is compiled.
std::string in_source(const std::string& path = "");

/// A file of the build.
std::string in_build(const std::string& path = "");

} // namespace troupe
