#pragma once

#include <string>

namespace troupe::experiments::launchers {

/// For `bash -s` on a host: reads orders from standard input, answers them, runs the node, watches
/// it, removes everything. `word` begins each answer; the times are in seconds.
std::string host_script(const std::string& word, const std::string& folder, long start_limit,
                        long lost, long grace);

/// For `bash -s` on a host: kills every process that was started for `folder`, and removes it.
std::string clean_up_script(const std::string& word, const std::string& folder);

} // namespace troupe::experiments::launchers
