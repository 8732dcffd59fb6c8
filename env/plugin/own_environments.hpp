#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/plugin/plugin.hpp"

namespace troupe::env {

/// Parses "a=1", "b=x" into pairs. Throws std::invalid_argument if `=` is missing, a key is empty,
/// or a key is given twice.
Options parse_options(const std::vector<std::string>& options);

/// Throws std::invalid_argument, with the nearest known keys, if no getter has asked for one of the
/// keys.
void check_all_asked(const Options& options, const std::string& origin);

/// The names of the environments that are linked into this program (plugin.hpp), sorted.
std::vector<std::string> linked_environments();

/// Makes the environment of this name; nullptr if there is none.
std::unique_ptr<Environment> make_linked(const std::string& name, const Options& options);

/// The names of the environments in the shared library, sorted. A file name without a folder is
/// looked up in the working directory. A library stays loaded until the process ends. Throws
/// std::invalid_argument naming the file if it is missing, is not a shared library, has no entry
/// point, or was built for another version or by another compiler.
std::vector<std::string> plugin_environments(const std::filesystem::path& library);

/// Makes one of them, inside the checks that plugin.hpp promises. Throws what plugin_environments()
/// throws, and std::invalid_argument on an unknown name (with the nearest ones) or an invalid spec.
std::unique_ptr<Environment> make_plugin(const std::filesystem::path& library,
                                         const std::string& name, const Options& options);

/// Puts the checks of plugin.hpp around any untrusted environment. `origin` appears in messages
/// ("plug-in libmine.so"). Throws std::invalid_argument if the spec breaks a rule.
std::unique_ptr<Environment> guard(std::unique_ptr<Environment> environment,
                                   const std::string& origin);

/// Describes what is wrong with a spec in one sentence, or returns an empty string. Checks for: no
/// name, no observations or two with the same name, shapes that are empty or larger than 1 GiB,
/// invalid bounds, negative counts.
std::string spec_problem(const EnvironmentSpec& spec);

} // namespace troupe::env
