#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/loader.hpp"
#include "learner/workloads/classifier.hpp"
#include "learner/workloads/sngan.hpp"

namespace troupe::experiments {

/// A key and the member of a configuration that takes its value. The member's initial value is the
/// key's default; experiment.proto then states none.
struct Member {
  const char* key; // within its block: "shards"
  std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
               std::filesystem::path*, std::vector<std::string>*, std::vector<std::int64_t>*,
               std::vector<double>*>
      value;
};
using Members = std::vector<Member>;

Members members(actors::RunConfig& config); // keys outside blocks
Members members(env::EnvironmentConfig& config);
Members members(env::PixelOptions& config);
Members members(learner::D4pgConfig& config);
Members members(actors::RunConfig::Replay& config);
Members members(actors::RunConfig::Learner& config);
Members members(actors::RunConfig::Actors& config);
Members members(actors::RunConfig::Supervision& config);
Members members(actors::RunConfig::Evaluation& config);
Members members(actors::RunConfig::Stop& config);
Members members(actors::RunConfig::Checkpoint& config);
Members members(learner::ClassifierConfig& config); // without data.epochs
Members members(learner::SnganConfig& config);
Members members(learner::data::DatasetOptions& options);
Members members(learner::data::LoaderOptions& options);

/// Copies the values that the block has to their members.
void assign(const google::protobuf::Message& block, const Members& members);

/// The default of a key that has a member, as it is written in a file; lists: "256,256".
std::optional<std::string> member_default(const google::protobuf::FieldDescriptor& key);

} // namespace troupe::experiments
