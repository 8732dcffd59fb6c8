#pragma once

#include <filesystem>
#include <string>

namespace troupe::experiments::commands {

/// Finds a LibTorch program as a shell would, by its path or along PATH, and checks that a
/// library can be preloaded into it. Throws std::invalid_argument that names the obstacle: the
/// program is missing, not executable, a script, static or setuid, does not use LibTorch, or needs
/// a library that is not found.
std::filesystem::path find_trainer(const std::string& name);

/// The library that makes a program data-parallel: next to this program, in ../lib, or where the
/// build put it. Throws std::runtime_error that lists the places tried.
std::filesystem::path find_preload_library();

} // namespace troupe::experiments::commands
