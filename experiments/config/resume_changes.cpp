#include "experiments/config/resume_changes.hpp"

#include <algorithm>
#include <span>

#include "experiments/config/keys.hpp"

namespace troupe::experiments {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct Keeping {
  const char* key;    // or block
  const char* reason; // why it must stay; nullptr: it may change
};

/// The longest key or block that fits decides; without one a key may change.
constexpr Keeping kRules[] = {
    {"name", "the run's folder is called by it"},
    {"seed", "random states continue from the checkpoint, so another seed would have no effect"},
    {"deterministic", "rounds and free play count steps in different ways"},
    {"environment", "the policy and replay's items know that environment and no other"},
    {"environment.models", nullptr},
    {"environment.plugin", nullptr},
    {"environment.episode_log", nullptr},
    {"environment.pixels.renderer", nullptr},
    {"replay.n_step", "replay's items were made with it"},
    {"replay.discount", "replay's items were made with it"},
    {"d4pg.policy_layers", "the checkpoint's networks have these"},
    {"d4pg.critic_layers", "the checkpoint's networks have these"},
    {"d4pg.layer_norm", "the checkpoint's networks were made with it"},
    {"d4pg.atoms", "the checkpoint's critic has so many"},
    {"d4pg.value_minimum", "the critic's atoms stand for returns from it on"},
    {"d4pg.value_maximum", "the critic's atoms stand for returns up to it"},
    {"d4pg.reward_scale", "the critic has learnt returns of that scale"},
    {"d4pg.encoder", "the checkpoint's networks have that one"},
    {"d4pg.encoder_channels", "the checkpoint's networks have so many"},
    {"d4pg.feature_size", "the checkpoint's networks have it"},
    {"learner.strategy", "the optimizers' moments lie where that strategy keeps them"},
    {"data", "the rows continue in the order of the checkpoint"},
    {"data.path", nullptr},
    {"data.validation", nullptr},
    {"data.epochs", nullptr},
    {"data.evaluation_epochs", nullptr},
    {"data.threads", nullptr},
    {"data.prefetch", nullptr},
    {"data.tolerate", nullptr},
    {"classifier", "networks, moments and schedule are those of the checkpoint"},
    {"sngan", "networks, moments and schedule are those of the checkpoint"},
};

const Keeping* keeping_of(const std::string& key) {
  const Keeping* best = nullptr;
  for (const Keeping& keeping : kRules) {
    const std::string name = keeping.key;
    const bool fits = key == name || key.starts_with(name + ".");
    if (fits && (best == nullptr || name.size() > std::string(best->key).size())) {
      best = &keeping;
    }
  }
  return best;
}

std::string text_of_value(const Message& message, const FieldDescriptor& field) {
  if (!field.is_repeated()) {
    return value_text(message, field, -1);
  }
  std::string text;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    text += std::string(i == 0 ? "" : ",") + value_text(message, field, i);
  }
  return text;
}

void compare(const Message& before, const Message& after, const std::string& prefix,
             std::vector<KeyChange>& changes) {
  for (int i = 0; i < before.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *before.GetDescriptor()->field(i);
    const std::string key = prefix + field.name();
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field.is_repeated()) {
      const std::string was = text_of_value(before, field);
      const std::string is = text_of_value(after, field);
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
    const Keeping* keeping = keeping_of(change.key);
    if (keeping != nullptr && keeping->reason != nullptr) {
      complaints.push_back(text_of(change) + "; a run that is resumed must keep it: "
                           + keeping->reason + "; leave it out, or start a new run");
    }
  }
  return complaints;
}

std::string text_of(const KeyChange& change) {
  return change.key + " was " + shown(change.before) + " and is " + shown(change.after);
}

} // namespace troupe::experiments
