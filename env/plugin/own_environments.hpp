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

/// Throws std::invalid_argument, with the nearest that were asked for, when one was not.
void check_all_asked(const Options& options, const std::string& origin);

/// Names of the environments that are linked into this program, sorted (plugin.hpp).
std::vector<std::string> linked_environments();

/// One of them; nullptr when there is none of this name.
std::unique_ptr<Environment> make_linked(const std::string& name, const Options& options);

/// Names of the environments of the shared library, sorted. A name without a folder is looked for
/// in the working directory. A library stays loaded until the process ends. Throws
/// std::invalid_argument naming the file: not there, no shared library, no entry point, built for
/// another version or by another compiler.
std::vector<std::string> plugin_environments(const std::filesystem::path& library);

/// One of them, within the checks that plugin.hpp promises. Throws as above, with the nearest names
/// when it has none of this name, and what is wrong with its spec.
std::unique_ptr<Environment> make_plugin(const std::filesystem::path& library,
                                         const std::string& name, const Options& options);

/// The checks of plugin.hpp around any environment that is not to be trusted; `origin` is for
/// messages ("plug-in libmine.so"). Throws std::invalid_argument when its spec breaks a rule.
std::unique_ptr<Environment> guard(std::unique_ptr<Environment> environment,
                                   const std::string& origin);

/// What is wrong with a spec, one sentence; empty when nothing is: no name, no observations or two
/// of one name, shapes that are empty or larger than 1 GiB, bounds that are no bounds, negative
/// counts.
std::string spec_problem(const EnvironmentSpec& spec);

} // namespace troupe::env
