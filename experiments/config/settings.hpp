#pragma once

#include "experiments/run_folder/event_file.hpp"

namespace google::protobuf {
class Message;
}

namespace troupe::experiments {

/// The values of all keys that are set in an experiment. What is neither true or false nor one
/// number is text, as value_text() writes it, but texts have no quotes.
Settings settings_of(const google::protobuf::Message& experiment);

} // namespace troupe::experiments
