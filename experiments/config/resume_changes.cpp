#include "experiments/config/resume_changes.hpp"

#include "experiments/config/config.hpp"
#include "experiments/config/keys.hpp"
#include "learner/agents/agent_kinds.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Why a resumed run must keep a key: the reason given by its own rule, or by that of the innermost
/// block around it that has one. Empty if the key may change.
std::string reason_to_keep(const std::string& key) {
  if (learner::find_agent(key) != nullptr) {
    return "the checkpoint's networks are that agent's";
  }
  for (std::size_t end = key.size(); end != std::string::npos && end > 0;
       end = key.rfind('.', end - 1)) {
    const FieldDescriptor* field = find_key(key.substr(0, end));
    if (field != nullptr && rule_of(*field).has_fixed()) {
      return rule_of(*field).fixed();
    }
  }
  return "";
}

void compare(const Message& before, const Message& after, const std::string& prefix,
             std::vector<KeyChange>& changes) {
  for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *before.GetDescriptor()->field(i);
    const std::string key = prefix + field.name();
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field.is_repeated()) {
      const std::string was = value_text(before, field);
      const std::string is = value_text(after, field);
      if (was != is) {
        changes.push_back({key, was, is});
      }
      continue;
    }
    const bool had = before.GetReflection()->HasField(before, &field);
    const bool has = after.GetReflection()->HasField(after, &field);
    if (had != has) {
      changes.push_back({key, had ? "there" : "not there", has ? "there" : "not there"});
    } else if (had) {
      compare(before.GetReflection()->GetMessage(before, &field),
              after.GetReflection()->GetMessage(after, &field), key + ".", changes);
    }
  }
}

std::string shown(const std::string& value) {
  return value.empty() ? "empty" : value;
}

} // namespace

std::vector<KeyChange> changes_between(const Experiment& before, const Experiment& after) {
  std::vector<KeyChange> changes;
  compare(before, after, "", changes);
  return changes;
}

std::vector<std::string> refused_changes(const std::vector<KeyChange>& changes) {
  std::vector<std::string> complaints;
  for (const KeyChange& change : changes) {
    const std::string reason = reason_to_keep(change.key);
    if (!reason.empty()) {
      complaints.push_back(text_of(change) + "; a resumed run must keep it: " + reason
                           + "; leave it out, or start a new run");
    }
  }
  return complaints;
}

RunFit fit_of_run(const std::filesystem::path& run, const Experiment& experiment) {
  try {
    const auto changes = changes_between(load_experiment(run / "config.textproto"), experiment);
    const auto refused = refused_changes(changes);
    return {changes.empty(), refused.empty() ? "" : refused.front()};
  } catch (const ConfigError& damage) {
    return {false, damage.what()};
  }
}

std::string text_of(const KeyChange& change) {
  return change.key + " was " + shown(change.before) + " and is " + shown(change.after);
}

} // namespace troupe::experiments
