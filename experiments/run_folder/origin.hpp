#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::experiments {

/// What made a run: origin.json in its folder.
struct Origin {
  std::string version;   // of Troupe
  std::string command;   // the words of the process
  std::string processor; // "AMD EPYC"
  int cores = 0;
  std::string commit;    // that Git has checked out in the folder where it was started; "": none
  int changed_files = 0; // there, against the commit; files that Git does not know do not count

  /// "0123456789ab and 3 changed files"; "" without a commit.
  std::string commit_text() const;
};

/// Of this process. Asks `git` about `folder` for 2 s at most; an absent or slow one leaves the
/// commit out.
Origin present_origin(const std::string& version, const std::filesystem::path& folder = ".");

/// This machine's processor, as the system names it; "" if it does not.
std::string processor_name();

void write_origin(const std::filesystem::path& run, const Origin& origin);

/// Nullopt: the file is missing, or no such JSON.
std::optional<Origin> read_origin(const std::filesystem::path& run);

} // namespace troupe::experiments
