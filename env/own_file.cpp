#include "env/own_file.hpp"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace troupe::env {

std::filesystem::path own_file() {
  std::error_code ignored;
  Dl_info own{};
  void* library = nullptr; // a link_map, whose name is empty for the program
  if (::dladdr1(reinterpret_cast<void*>(&own_file), &own, &library, RTLD_DL_LINKMAP) != 0
      && *static_cast<const link_map*>(library)->l_name)
    return std::filesystem::absolute(own.dli_fname, ignored);
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::vector<std::filesystem::path> shared_folders(const std::filesystem::path& object,
                                                  const std::filesystem::path& name) {
  const auto folder = object.parent_path();
  return {folder.parent_path() / "share/troupe" / name, folder / "share/troupe" / name};
}

} // namespace troupe::env
