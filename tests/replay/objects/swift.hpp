#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "env/processes/child_process.hpp"
#include "replay/objects/store_options.hpp"

namespace troupe::replay {

/// A real OpenStack Swift on this host, with its S3 interface and the empty bucket "bucket".
class Swift {
public:
  /// Stores the objects in `folder`, which may contain those of an earlier server.
  explicit Swift(const std::filesystem::path& folder, bool tls = false)
      : process_("/usr/bin/python3",
                 tls ? std::vector<std::string>{TROUPE_SWIFT_SERVER, folder.string(), "--tls"}
                     : std::vector<std::string>{TROUPE_SWIFT_SERVER, folder.string()}),
        line_(process_.line()) {}

  /// Returns false where Swift is not installed, with a message that makes ctest skip the case.
  bool runs() const {
    if (line_.starts_with("ready "))
      return true;
    MESSAGE(line_);
    REQUIRE(line_.starts_with("skipped:"));
    return false;
  }
  std::string endpoint() const { return line_.substr(std::string("ready ").size()); }
  void kill() { process_.kill(); }

  /// Options with short deadlines.
  StoreOptions options() const {
    return {.endpoint = endpoint(),
            .keys = {.access_key = "test:tester", .secret_key = "testing"},
            .part_bytes = std::size_t{5} << 20,
            .attempts = 2,
            .first_pause = std::chrono::milliseconds(1)};
  }

private:
  ChildProcess process_;
  std::string line_;
};

} // namespace troupe::replay
