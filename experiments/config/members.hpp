#pragma once

#include <optional>
#include <string>

#include "actors/protocol/run_config.hpp"
#include "experiments/config/experiment.pb.h"
#include "learner/agents/options.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/loader.hpp"
#include "learner/workloads/classifier.hpp"
#include "learner/workloads/sngan.hpp"

namespace troupe::experiments {

using learner::assign;
using learner::Members;

Members members(actors::RunConfig& config); // keys outside of blocks
Members members(env::EnvironmentConfig& config);
Members members(env::PixelOptions& config);
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

/// The default of a key that has a member, as written in a file; a list as "256,256".
std::optional<std::string> member_default(const google::protobuf::FieldDescriptor& key);

} // namespace troupe::experiments
