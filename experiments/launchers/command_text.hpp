#pragma once

#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// Formats a command as a shell line for messages. Replaces likely secrets ("--token x",
/// "--secret-key=x", "PASSWORD=x") with "…".
std::string command_text(const std::vector<std::string>& words);

/// Quotes a word for a POSIX shell.
std::string quoted(const std::string& word);

/// Finds a program along PATH. If there is none, throws std::invalid_argument that names `key` and
/// the package to install.
std::string find_program(const std::string& name, const std::string& key,
                         const std::string& way_out);

/// Describes the end of a node: "node host1 (10.0.0.2): `ssh …` ended with exit code 255:
/// Permission denied (publickey)"
NodeEnd node_end(const NodeStart& node, const std::vector<std::string>& command,
                 const ChildProcesses::End& end);

/// Describes the end of a node by its exit code in a shell: 137 means "was killed by signal 9
/// (Killed)".
NodeEnd shell_end(const NodeStart& node, int exit_code, const std::string& last_line);

} // namespace troupe::experiments::launchers
