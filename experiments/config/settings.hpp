#pragma once

#include "experiments/run_folder/event_file.hpp"

namespace google::protobuf {
class Message;
}

namespace troupe::experiments {

/// The values of all keys that are set in an experiment. Values other than booleans and single
/// numbers become text, as value_text() formats it, but without quotes around texts.
Settings settings_of(const google::protobuf::Message& experiment);

} // namespace troupe::experiments
