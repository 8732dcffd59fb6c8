#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages.pb.h"
#include "actors/protocol/run_config.hpp"
#include "actors/roles/checkpoint.hpp"

namespace troupe::actors {

/// Deadline for writing a checkpoint or snapshot.
constexpr std::chrono::minutes kWriteDeadline{120};

struct CheckpointerState {
  static const char* name;
  RunConfig::Checkpoint options;
  std::map<ActorKey, caf::actor> parts;
  std::filesystem::path last; // newest complete one of this line of the run; may be empty
  // The checkpoint that is being written.
  std::filesystem::path partial, complete;
  wire::Manifest manifest;
  std::set<ActorKey> missing; // parts that are not captured or written yet
  std::uint64_t serial = 0;
  std::optional<caf::typed_response_promise<done_atom>> capturing;
  std::vector<caf::typed_response_promise<std::string>> waiting; // for the complete one
  caf::error failure;                                            // of the last checkpoint
};

CheckpointerActor::behavior_type
checkpointer_actor(CheckpointerActor::stateful_pointer<CheckpointerState> self,
                   RunConfig::Checkpoint options);

/// Returns the path of an actor's part of a checkpoint: a file, but for learners the checkpoint's
/// folder itself, and for all parameter servers one common folder.
std::filesystem::path part_path(const std::filesystem::path& checkpoint, Role role,
                                std::int32_t index);

} // namespace troupe::actors
