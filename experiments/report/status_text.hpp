#pragma once

#include <string>

#include "actors/protocol/messages.pb.h"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments {

/// What `troupe status` and `troupe top` print of a run.
std::string status_text(const HeadPlace& head, const actors::wire::RunStatus& status);

/// The same as one JSON object. Numbers that are not finite are null.
std::string status_json(const HeadPlace& head, const actors::wire::RunStatus& status);

/// The part of a text that a screen shows: its first `rows` lines, each cut to `columns`
/// characters.
std::string cut_to_screen(const std::string& text, int rows, int columns);

} // namespace troupe::experiments
