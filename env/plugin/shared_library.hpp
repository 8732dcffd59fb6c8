#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::env {

/// The head of every plug-in's table; it never changes or moves.
struct PluginHead {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t interface_bytes = 0;
  const char* fingerprint = "";
};

/// Names for one kind of plug-in, for messages.
struct PluginWords {
  const char* entry_point; // "troupe_environments"
  const char* macro;       // "TROUPE_ENVIRONMENTS(...)"
  const char* header;      // "env/plugin/plugin.hpp"
  const char* things;      // "environments"
};

/// Loads a shared library, which stays loaded until the process ends, and returns its entry point.
/// A file name without a folder is looked up in the working directory. Throws std::invalid_argument
/// naming the file if it is missing, is not a shared library, or has no entry point.
void* plugin_entry_point(const std::filesystem::path& library, const PluginWords& words);

/// Throws std::invalid_argument if the table of `origin` comes from another build: another magic
/// number, interface version, compiler or class size.
void check_plugin_head(const PluginHead& head, const PluginHead& own, const std::string& origin,
                       const PluginWords& words);

} // namespace troupe::env
