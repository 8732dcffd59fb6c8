#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::env {

/// What the table of every kind of plug-in begins with; it never changes or moves.
struct PluginHead {
  std::uint64_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t interface_bytes = 0;
  const char* fingerprint = "";
};

/// What a kind of plug-in is called in messages.
struct PluginWords {
  const char* entry_point; // "troupe_environments"
  const char* macro;       // "TROUPE_ENVIRONMENTS(...)"
  const char* header;      // "env/plugin/plugin.hpp"
  const char* things;      // "environments"
};

/// The entry point of a shared library, which stays loaded until the process ends. A name without a
/// folder is searched in the working directory. Throws std::invalid_argument naming the file:
/// missing, no shared library, no entry point.
void* plugin_entry_point(const std::filesystem::path& library, const PluginWords& words);

/// Throws std::invalid_argument if the table of `origin` is another build's: its magic number, the
/// version of the interface, the compiler or the sizes of classes.
void check_plugin_head(const PluginHead& head, const PluginHead& own, const std::string& origin,
                       const PluginWords& words);

} // namespace troupe::env
