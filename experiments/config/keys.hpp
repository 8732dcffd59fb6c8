#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "learner/agents/options.hpp"

namespace troupe::experiments {

/// A key of an experiment file as the schema describes it, for messages, `--set` and `troupe list
/// keys`. The functions in this file are pure; any thread may call them.
struct Key {
  std::string name; // dotted, such as "replay.shards"
  const google::protobuf::FieldDescriptor* field = nullptr;
};

/// The schema of a file; an experiment's by default.
using Schema = google::protobuf::Descriptor;

/// All keys that have a value (blocks have none), in the order of the schema.
std::vector<Key> all_keys(const Schema& schema = *Experiment::descriptor());

/// The field with a dotted name, a block or a value; nullptr if there is none.
const google::protobuf::FieldDescriptor* find_key(const std::string& name,
                                                  const Schema& schema = *Experiment::descriptor());

const Rule& rule_of(const google::protobuf::FieldDescriptor& field);

/// The rule for values of this field: "a whole number from 1 to 64, in frames".
std::string rule_text(const google::protobuf::FieldDescriptor& field);

/// The default as written in a file: "256,256,256" for a list; empty for an empty string.
std::string default_text(const google::protobuf::FieldDescriptor& field);

/// The value as written in a file. `index` selects an element of a repeated field.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field, int index);

/// All values of a field: "256,256" for a list.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field);

/// The value of a numeric field; nothing for other kinds. `index` selects an element of a repeated
/// field.
std::optional<double> number_of(const google::protobuf::Message& message,
                                const google::protobuf::FieldDescriptor& field, int index);

/// Returns a complaint if the value breaks its rule or is not finite.
std::optional<std::string> violation(const google::protobuf::Message& message,
                                     const google::protobuf::FieldDescriptor& field, int index);

/// Suggestions for an unknown key in the dotted block `block`: "; did you mean replay.shards or
/// replay.n_step?". Empty if no name is similar.
std::string did_you_mean(const std::string& block, const std::string& name,
                         const Schema& schema = *Experiment::descriptor());

/// The hint " (`troupe list keys` names them all)" for this schema.
std::string where_keys_are(const Schema& schema);

using learner::number_text;

} // namespace troupe::experiments
