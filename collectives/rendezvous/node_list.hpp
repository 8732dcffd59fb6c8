#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::collectives {

/// The most names or tasks that a description of a cluster may expand to.
constexpr std::size_t kMostNodes = 65'536;

/// Slurm's short form of host names, in its order: "n[1-3,07],m4" is n1 n2 n3 n07 m4; several
/// brackets in a name multiply, the last one fastest. Bytes from outside: throws
/// std::invalid_argument saying what is wrong and where, and never gives more than kMostNodes
/// names.
std::vector<std::string> expand_node_list(std::string_view list);

/// Slurm's counts of tasks per node: "2(x3),1" is 2 2 2 1. Throws likewise.
std::vector<int> expand_task_counts(std::string_view counts);

/// Bytes from outside for a message: in quotes, printable, cut to 80.
std::string shown(std::string_view text);

} // namespace troupe::collectives
