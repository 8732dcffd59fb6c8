#pragma once

#include <string>

#include "actors/protocol/messages.pb.h"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments {

/// The text that `troupe status` and `troupe top` print about a run.
std::string status_text(const HeadPlace& head, const actors::wire::RunStatus& status);

/// Like status_text(), but one JSON object. Numbers that are not finite are null.
std::string status_json(const HeadPlace& head, const actors::wire::RunStatus& status);

/// Cuts a text to a screen: its first `rows` lines, each with at most `columns` characters.
std::string cut_to_screen(const std::string& text, int rows, int columns);

} // namespace troupe::experiments
