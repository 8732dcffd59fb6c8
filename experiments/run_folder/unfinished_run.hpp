#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace troupe::experiments {

/// How a run fits the experiment that is to continue.
struct RunFit {
  bool is_same = false;     // it is a run of exactly this experiment
  std::string refusal = {}; // why its checkpoints do not fit; empty if they do
};

struct UnfinishedRun {
  std::filesystem::path run = {}; // empty: there is none
  std::string note = {};          // if no run fits: why the newest one does not
};

/// The run that a restarted deployment resumes if there is anything to continue from. Other jobs
/// may have runs in the same folder, so it is, below <runs>/<name>, the newest run of the same
/// experiment, preferably one in which no process works, otherwise the newest idle run that fits.
/// There is none if that run ends with a final evaluation.
UnfinishedRun
find_unfinished_run(const std::filesystem::path& runs, const std::string& name,
                    const std::function<RunFit(const std::filesystem::path& run)>& fit_of);

} // namespace troupe::experiments
