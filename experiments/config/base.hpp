#pragma once

#include <filesystem>
#include <string>

#include "experiments/config/parse.hpp"

namespace troupe::experiments {

/// Parses Protobuf text into `experiment`, on top of its base: the file that its key `base` names,
/// relative to `source` (".textproto" may be omitted). Bases may have bases of their own, up to 8
/// levels. Keys of the text replace those of the base, lists as a whole; `name` is not inherited,
/// and `base` is cleared. Paths of plug-ins become absolute: they are relative to the file that
/// contains them. Returns the first complaint; empty if there is none. Throws ConfigError
/// if a base cannot be read.
std::string parse_with_base(const std::string& text, const std::string& source,
                            Experiment& experiment, Origins& origins);

/// Makes relative paths of plug-ins absolute; they are relative to `folder`, or to the working
/// directory if `folder` is empty.
void settle_plugins(Experiment& experiment, const std::filesystem::path& folder = {});

} // namespace troupe::experiments
