#pragma once

#include <string>

namespace troupe::experiments::launchers {

/// Script for `bash -s` on a host. It reads commands from standard input and answers them, runs and
/// watches the node, and finally removes everything. Each answer begins with `word`. Times are in
/// seconds.
std::string host_script(const std::string& word, const std::string& folder, long start_limit,
                        long lost, long grace);

/// Script for `bash -s` on a host that kills every process started for `folder` and removes the
/// folder.
std::string clean_up_script(const std::string& word, const std::string& folder);

} // namespace troupe::experiments::launchers
