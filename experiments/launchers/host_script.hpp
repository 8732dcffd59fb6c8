#pragma once

#include <string>

namespace troupe::experiments::launchers {

/// Script for `bash -s` on a host: reads commands from standard input, answers them, runs and
/// watches the node, and removes everything. Each answer begins with `word`; times are in seconds.
std::string host_script(const std::string& word, const std::string& folder, long start_limit,
                        long lost, long grace);

/// Script for `bash -s` on a host: kills every process started for `folder`, and removes it.
std::string clean_up_script(const std::string& word, const std::string& folder);

} // namespace troupe::experiments::launchers
