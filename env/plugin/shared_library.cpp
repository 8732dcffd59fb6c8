#include "env/plugin/shared_library.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <system_error>

namespace troupe::env {

void* plugin_entry_point(const std::filesystem::path& library, const PluginWords& words) {
  const std::filesystem::path path = std::filesystem::absolute(library);
  const std::string origin = "plugin: " + library.string();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw std::invalid_argument(origin + " is not a file"
                                + (library.is_absolute() ? "" : " (" + path.string() + ")")
                                + "; name the shared library that holds the " + words.things);
  ::dlerror();
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    throw std::invalid_argument(origin + " cannot be loaded as a shared library: "
                                + (reason == nullptr ? "no reason given" : reason)
                                + "; build it with -shared -fPIC");
  }
  void* entry = ::dlsym(handle, words.entry_point);
  if (entry == nullptr)
    throw std::invalid_argument(origin + " has no entry point " + words.entry_point
                                + ", so it is not a plug-in of " + words.things
                                + "; end its source with " + words.macro + " of " + words.header);
  return entry;
}

void check_plugin_head(const PluginHead& head, const PluginHead& own, const std::string& origin,
                       const PluginWords& words) {
  const std::string again = std::string("; build it again with the ") + words.header
                            + " and the compiler of this program";
  if (head.magic != own.magic)
    throw std::invalid_argument(origin + ": its entry point " + words.entry_point
                                + " returns no table of " + words.things + "; define it with "
                                + words.macro);
  if (head.version != own.version)
    throw std::invalid_argument(origin + " was built for version " + std::to_string(head.version)
                                + " of the interface and this program has version "
                                + std::to_string(own.version) + again);
  if (std::string(head.fingerprint) != own.fingerprint)
    throw std::invalid_argument(origin + " was built with " + head.fingerprint
                                + " and this program with " + own.fingerprint + again);
  if (head.interface_bytes != own.interface_bytes)
    throw std::invalid_argument(
        origin + " was built with different sizes of the interface's classes" + again);
}

} // namespace troupe::env
