#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace troupe::collectives {

template <class Module>
struct ModuleFile {
  const Module* module = nullptr;
  std::string reason; // why there is no module; empty if there is one
};

/// Returns the folders in which a module may be, most specific first: the program's folder, the lib
/// folder next to it, the folder of the library that contains this code, and the loader's search
/// path for that library (LD_LIBRARY_PATH, its run path, the system's folders). The build and the
/// installed CMake package give each program a run path to the modules' folder.
std::vector<std::filesystem::path> module_folders();

/// Loads lib<name>.so, which exports a Module under <name>_module, from the first of those folders
/// that has it. The module stays loaded for the rest of the process. `without` says why this build
/// has no such module; it is empty if the build has one.
template <class Module>
ModuleFile<Module> load_module(const std::string& name, const std::string& without) {
  if (!without.empty())
    return {nullptr, without};
  const auto file = "lib" + name + ".so";
  std::error_code ignored;
  std::string tried;
  for (const auto& folder : module_folders()) {
    const auto path = folder / file;
    if (!std::filesystem::exists(path, ignored)) {
      tried += (tried.empty() ? "" : ", ") + folder.string();
      continue;
    }
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return {nullptr, "the module cannot be loaded: " + std::string(dlerror())};
    const auto* module = static_cast<const Module*>(dlsym(library, (name + "_module").c_str()));
    if (!module || module->version != Module::kVersion)
      return {nullptr, path.string() + " belongs to another version of this program; rebuild both"};
    return {module, {}};
  }
  return {nullptr, file + " was not found in " + tried
                       + "; put it beside the program, or name its folder in LD_LIBRARY_PATH"};
}

} // namespace troupe::collectives
