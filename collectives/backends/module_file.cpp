#include "collectives/backends/module_file.hpp"

#include <algorithm>
#include <cstddef>

#include <link.h>

namespace troupe::collectives {
namespace {

/// The folders in which the loader searches for libraries on behalf of `library` (a handle).
std::vector<std::filesystem::path> search_path(void* library) {
  Dl_serinfo size{};
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, &size) != 0)
    return {};
  std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const all = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(library, RTLD_DI_SERINFOSIZE, all) != 0 || dlinfo(library, RTLD_DI_SERINFO, all) != 0)
    return {};
  std::vector<std::filesystem::path> folders;
  for (const auto* path = all->dls_serpath; path != all->dls_serpath + all->dls_cnt; ++path)
    folders.emplace_back(path->dls_name);
  return folders;
}

} // namespace

std::vector<std::filesystem::path> module_folders() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::filesystem::path> folders{program, program.parent_path() / "lib"};
  Dl_info own{};
  void* library = nullptr; // the C library's handles are link_maps
  if (dladdr1(reinterpret_cast<void*>(&module_folders), &own, &library, RTLD_DL_LINKMAP) != 0) {
    if (*static_cast<const link_map*>(library)->l_name) // empty: the program itself
      folders.push_back(std::filesystem::path(own.dli_fname).parent_path());
    const auto searched = search_path(library);
    folders.insert(folders.end(), searched.begin(), searched.end());
  }
  std::vector<std::filesystem::path> once;
  for (const auto& folder : folders)
    if (std::find(once.begin(), once.end(), folder) == once.end())
      once.push_back(folder);
  return once;
}

} // namespace troupe::collectives
