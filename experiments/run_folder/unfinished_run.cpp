#include "experiments/run_folder/unfinished_run.hpp"

#include <algorithm>
#include <fstream>

#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

/// Whether the last complete row is a final evaluation. A run that has been continued after its
/// final evaluation has further rows.
bool ends_with_final_evaluation(const fs::path& run) {
  std::ifstream in(run / "metrics.csv", std::ios::binary);
  bool final = false;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    final = line.starts_with("final,");
  }
  return final;
}

} // namespace

UnfinishedRun find_unfinished_run(const fs::path& runs, const std::string& name,
                                  const std::function<RunFit(const fs::path& run)>& fit_of) {
  fs::path same;     // the newest idle run of this experiment
  fs::path held;     // the newest one in which a process works
  fs::path changed;  // the newest idle run of another experiment that fits
  std::string other; // why the newest run that does not fit is refused
  auto newest_first = runs_in(runs / name);
  std::reverse(newest_first.begin(), newest_first.end());
  for (const fs::path& run : newest_first) {
    const RunFit fit = fit_of(run);
    const bool idle = !is_run_held(run).value_or(false);
    if (!fit.refusal.empty()) {
      other = other.empty() ? run.string() + " is not resumed: " + fit.refusal : other;
    } else if (fit.is_same && !idle) {
      held = held.empty() ? run : held;
    } else if (fit.is_same) {
      if (held.empty() || !ends_with_final_evaluation(run)) {
        same = run;
        break;
      }
    } else if (idle) {
      changed = changed.empty() ? run : changed;
    }
  }
  const fs::path& chosen = !same.empty() ? same : !held.empty() ? held : changed;
  UnfinishedRun found;
  if (chosen.empty()) {
    found.note = other;
  } else if (!ends_with_final_evaluation(chosen)) {
    found.run = chosen;
  }
  return found;
}

} // namespace troupe::experiments
