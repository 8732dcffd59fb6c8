#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::collectives {

/// The largest number of names or tasks that a cluster description may expand to.
constexpr std::size_t kMostNodes = 65'536;

/// Expands Slurm's compact form of host names, in order: "n[1-3,07],m4" becomes n1 n2 n3 n07 m4. If
/// a name has several brackets, all combinations are listed, with the last bracket varying fastest.
/// The input is untrusted: throws std::invalid_argument saying what is wrong and where, and never
/// returns more than kMostNodes names.
std::vector<std::string> expand_node_list(std::string_view list);

/// Expands Slurm's task counts per node: "2(x3),1" becomes 2 2 2 1. Throws in the same way.
std::vector<int> expand_task_counts(std::string_view counts);

/// Formats untrusted bytes for a message: quoted, printable and cut to 80 characters.
std::string shown(std::string_view text);

} // namespace troupe::collectives
