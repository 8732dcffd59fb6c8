#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "env/processes/child_process.hpp"
#include "replay/objects/store_options.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {

/// moto on this host. `plain` is S3 with the bucket "bucket" and access key checks; `secured` is
/// the Security Token Service for web identities.
class Moto {
public:
  explicit Moto(const TemporaryFolder& folder)
      : folder_(folder.path()),
        process_("/usr/bin/python3",
                 {TROUPE_MOTO_SERVER, folder.path().string(), TROUPE_MOTO_VENV}),
        line_(process_.line()) {
    std::istringstream words(line_);
    words >> ready_ >> plain >> secured;
    std::ofstream(folder_ / "token") << "header.claims.signature\n";
  }
  bool runs() const {
    if (ready_ == "ready")
      return true;
    MESSAGE(line_);
    REQUIRE(line_.starts_with("skipped:"));
    return false;
  }

  /// Options as in a pod that gets its keys from moto.
  StoreOptions options() const {
    const std::map<std::string, std::string> pod{
        {"AWS_WEB_IDENTITY_TOKEN_FILE", folder_ / "token"},
        {"AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/trainer"},
        {"AWS_ENDPOINT_URL_STS", secured},
        {"AWS_ENDPOINT_URL", plain},
        {"AWS_CA_BUNDLE", folder_ / "certificate.pem"}};
    auto options = store_options([&](const char* name) -> std::optional<std::string> {
      const auto found = pod.find(name);
      return found == pod.end() ? std::nullopt : std::optional(found->second);
    });
    options.part_bytes = std::size_t{5} << 20;
    options.attempts = 2;
    options.first_pause = std::chrono::milliseconds(1);
    return options;
  }

private:
  std::filesystem::path folder_;
  ChildProcess process_;
  std::string line_, ready_;

public:
  std::string plain, secured;
};

} // namespace troupe::replay
