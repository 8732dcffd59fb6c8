#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// What is said at the end of a run, as name and value: task, return, steps, time, run folder,
/// video, each stage's rate over the whole run, and where the time went.
using Summary = std::vector<std::pair<std::string, std::string>>;

struct Finished {
  actors::RunResult result = {};
  std::filesystem::path folder = {};
  std::filesystem::path video = {}; // empty when there is none
  double wall_seconds = 0;          // of the whole program
};

Summary summarise(const Experiment& experiment, const Finished& finished);

/// One line each, the values aligned.
std::string summary_text(const Summary& summary);

/// One self-contained page without scripts or links to elsewhere: summary, return curve, the
/// complete configuration.
std::string report_html(const Experiment& experiment, const Summary& summary,
                        const std::string& curve_svg, const std::filesystem::path& video);

} // namespace troupe::experiments
