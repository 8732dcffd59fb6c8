#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// The summary at the end of a run, as pairs of name and value: task, return, steps, time, run
/// folder, video, the rate of each stage over the whole run, and where the time went.
using Summary = std::vector<std::pair<std::string, std::string>>;

struct Finished {
  actors::RunResult result = {};
  std::filesystem::path folder = {};
  std::filesystem::path video = {}; // empty if there is none
  double wall_seconds = 0;          // of the whole program
};

Summary summarise(const Experiment& experiment, const Finished& finished);

/// The summary with one line per entry and aligned values.
std::string summary_text(const Summary& summary);

/// A self-contained page without scripts or external links: summary, return curve, complete
/// configuration.
std::string report_html(const Experiment& experiment, const Summary& summary,
                        const std::string& curve_svg, const std::filesystem::path& video);

} // namespace troupe::experiments
