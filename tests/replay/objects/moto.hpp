#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "env/child_process.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {

/// moto on this host: S3 with the bucket "bucket" and its checks of keys at `plain`, the Security
/// Token Service for web identities at `secured`.
class Moto {
public:
  explicit Moto(const TemporaryFolder& folder)
      : process_("/usr/bin/python3",
                 {TROUPE_MOTO_SERVER, folder.path().string(), TROUPE_MOTO_VENV}),
        line_(process_.line()) {
    std::istringstream words(line_);
    words >> ready_ >> plain >> secured;
  }
  bool runs() const {
    if (ready_ == "ready")
      return true;
    MESSAGE(line_);
    REQUIRE(line_.starts_with("skipped:"));
    return false;
  }

private:
  ChildProcess process_;
  std::string line_, ready_;

public:
  std::string plain, secured;
};

} // namespace troupe::replay
