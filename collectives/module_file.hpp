#pragma once

#include <filesystem>
#include <string>

#include <dlfcn.h>

namespace troupe::collectives {

template <class Module>
struct ModuleFile {
  const Module* module = nullptr;
  std::string reason; // why not
};

/// Loads lib<name>.so, which exports a Module under <name>_module: from beside the program, the lib
/// folder beside its folder, or where the build left it (`built`; "": this build has none, for the
/// reason `without`). It stays loaded for the rest of the process.
template <class Module>
ModuleFile<Module> load_module(const std::string& name, const std::string& built,
                               const std::string& without) {
  if (built.empty())
    return {nullptr, without};
  const auto file = "lib" + name + ".so";
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::string tried;
  for (const std::filesystem::path& path :
       {folder / file, folder.parent_path() / "lib" / file, std::filesystem::path(built)}) {
    if (!std::filesystem::exists(path, ignored)) {
      tried += (tried.empty() ? "" : ", ") + path.string();
      continue;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return {nullptr, "the module does not load: " + std::string(dlerror())};
    const auto* module = static_cast<const Module*>(dlsym(library, (name + "_module").c_str()));
    if (!module || module->version != Module::kVersion)
      return {nullptr, path.string() + " is of another version of this program; build both anew"};
    return {module, {}};
  }
  return {nullptr, file + " was not found; tried " + tried};
}

} // namespace troupe::collectives
