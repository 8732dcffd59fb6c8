#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "learner/agents/options.hpp"

namespace troupe::experiments {

/// The keys of an experiment file, read from the schema, for messages, `--set` and `troupe list
/// keys`. Pure functions; any thread.
struct Key {
  std::string name; // dotted: "replay.shards"
  const google::protobuf::FieldDescriptor* field = nullptr;
};

/// The schema of a file: of an experiment, unless another is named.
using Schema = google::protobuf::Descriptor;

/// Every key that has a value (no blocks), in the order of the schema.
std::vector<Key> all_keys(const Schema& schema = *Experiment::descriptor());

/// The field behind a dotted name, block or value; nullptr when there is none.
const google::protobuf::FieldDescriptor* find_key(const std::string& name,
                                                  const Schema& schema = *Experiment::descriptor());

const Rule& rule_of(const google::protobuf::FieldDescriptor& field);

/// "a whole number from 1 to 64, in frames": what a value of this field must be.
std::string rule_text(const google::protobuf::FieldDescriptor& field);

/// The default as it is written in a file, "256,256,256" for a list, empty for an empty string.
std::string default_text(const google::protobuf::FieldDescriptor& field);

/// The value as it is written in a file. `index` of a repeated field.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field, int index);

/// The same of all values of a field: "256,256" for a list.
std::string value_text(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor& field);

/// The value of a numeric field, `index` of a repeated one; none for other kinds.
std::optional<double> number_of(const google::protobuf::Message& message,
                                const google::protobuf::FieldDescriptor& field, int index);

/// Returns a complaint if the value breaks its rule or is not finite.
std::optional<std::string> violation(const google::protobuf::Message& message,
                                     const google::protobuf::FieldDescriptor& field, int index);

/// "; did you mean replay.shards or replay.n_step?" for an unknown key in the dotted block `block`;
/// empty if no name is near.
std::string did_you_mean(const std::string& block, const std::string& name,
                         const Schema& schema = *Experiment::descriptor());

/// " (`troupe list keys` names them all)"
std::string where_keys_are(const Schema& schema);

/// "a, b or c" where `last` is " or ".
std::string joined(const std::vector<std::string>& parts, const std::string& last);

using learner::number_text;

} // namespace troupe::experiments
