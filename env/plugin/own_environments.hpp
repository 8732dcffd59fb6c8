#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/plugin/plugin.hpp"

namespace troupe::env {

/// "a=1", "b=x" as pairs. Throws std::invalid_argument for one without `=`, an empty key or a key
/// given twice.
Options parse_options(const std::vector<std::string>& options);

/// Throws std::invalid_argument, with the nearest known keys, on a key that was never asked for.
void check_all_asked(const Options& options, const std::string& origin);

/// Names of the environments that are linked into this program, sorted (plugin.hpp).
std::vector<std::string> linked_environments();

/// The environment of this name, or nullptr.
std::unique_ptr<Environment> make_linked(const std::string& name, const Options& options);

/// Names of the environments of the shared library, sorted. A name without a folder is searched in
/// the working directory. A library stays loaded until the process ends. Throws
/// std::invalid_argument naming the file: missing, no shared library, no entry point, built for
/// another version or by another compiler.
std::vector<std::string> plugin_environments(const std::filesystem::path& library);

/// One of them, inside the checks that plugin.hpp promises. Throws as above, on an unknown name
/// (with the nearest ones) and on a bad spec.
std::unique_ptr<Environment> make_plugin(const std::filesystem::path& library,
                                         const std::string& name, const Options& options);

/// The checks of plugin.hpp around any untrusted environment; `origin` appears in messages
/// ("plug-in libmine.so"). Throws std::invalid_argument when its spec breaks a rule.
std::unique_ptr<Environment> guard(std::unique_ptr<Environment> environment,
                                   const std::string& origin);

/// The fault of a spec in one sentence, or empty: no name, no observations or two of one name,
/// shapes that are empty or larger than 1 GiB, invalid bounds, negative counts.
std::string spec_problem(const EnvironmentSpec& spec);

} // namespace troupe::env
