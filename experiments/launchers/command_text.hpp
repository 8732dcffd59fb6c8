#pragma once

#include <string>
#include <vector>

#include "experiments/launchers/child_processes.hpp"
#include "experiments/launchers/launcher.hpp"

namespace troupe::experiments::launchers {

/// A command as a shell line for messages; shows likely secrets ("--token x", "--secret-key=x",
/// "PASSWORD=x") as "…".
std::string command_text(const std::vector<std::string>& words);

/// Quotes a word for a POSIX shell.
std::string quoted(const std::string& word);

/// Finds a program along PATH. Throws std::invalid_argument naming `key` and the package if there
/// is none.
std::string find_program(const std::string& name, const std::string& key,
                         const std::string& way_out);

/// "node host1 (10.0.0.2): `ssh …` ended with exit code 255: Permission denied (publickey)"
NodeEnd node_end(const NodeStart& node, const std::vector<std::string>& command,
                 const ChildProcesses::End& end);

/// The end of a node by its exit code as a shell has it: 137 is "was killed by signal 9 (Killed)".
NodeEnd shell_end(const NodeStart& node, int exit_code, const std::string& last_line);

} // namespace troupe::experiments::launchers
