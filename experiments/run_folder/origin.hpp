#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace troupe::experiments {

/// The origin of a run, stored as origin.json in its folder.
struct Origin {
  std::string version;   // version of Troupe
  std::string command;   // command line of the process
  std::string processor; // such as "AMD EPYC"
  int cores = 0;
  std::string commit;    // commit checked out where the run was started; "": none
  int changed_files = 0; // tracked files there that differ from the commit

  /// "0123456789ab and 3 changed files"; "" without a commit.
  std::string commit_text() const;
};

/// The origin of a run of this process. Asks `git` about `folder` for at most 2 s; if Git is
/// missing or slow, the commit is left out.
Origin present_origin(const std::string& version, const std::filesystem::path& folder = ".");

/// The name that the system gives this machine's processor; "" if it gives none.
std::string processor_name();

void write_origin(const std::filesystem::path& run, const Origin& origin);

/// Returns nothing if the file is missing or is not valid JSON of this form.
std::optional<Origin> read_origin(const std::filesystem::path& run);

} // namespace troupe::experiments
