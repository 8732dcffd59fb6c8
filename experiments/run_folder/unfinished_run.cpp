#include "experiments/run_folder/unfinished_run.hpp"

#include <fstream>

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

bool has_final_evaluation(const fs::path& run) {
  std::ifstream in(run / "metrics.csv");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("final,")) {
      return true;
    }
  }
  return false;
}

} // namespace

fs::path find_unfinished_run(const fs::path& runs, const std::string& name) {
  fs::path newest; // by name, which is the start time
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(runs / name, error)) {
    if (fs::is_regular_file(entry.path() / "config.textproto", error)
        && entry.path().filename() > newest.filename()) {
      newest = entry.path();
    }
  }
  return newest.empty() || has_final_evaluation(newest) ? fs::path() : newest;
}

} // namespace troupe::experiments
