#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "actors/messages.pb.h"

namespace troupe::actors {

struct CheckpointerState {
  static const char* name;
  bool with_replay = true;
  int keep = 2;
  std::map<std::pair<Role, std::int32_t>, caf::actor> parts;
  std::filesystem::path last; // complete, of this line of the run; or empty
  // the one being written
  std::filesystem::path partial, complete;
  bool captured = false;
  wire::Manifest manifest;
  std::size_t missing = 0;
  std::uint64_t serial = 0;
  std::optional<caf::typed_response_promise<done_atom>> capturing;
  std::vector<caf::typed_response_promise<std::string>> waiting; // for the complete one
  caf::error failure;                                            // of the last one
};

CheckpointerActor::behavior_type
checkpointer_actor(CheckpointerActor::stateful_pointer<CheckpointerState> self, bool with_replay,
                   int keep);

/// Where an actor's part lies in a checkpoint: a file, for learners the folder itself, for all
/// parameter servers one folder.
std::filesystem::path part_path(const std::filesystem::path& checkpoint, Role role,
                                std::int32_t index);

/// Reads and checks a checkpoint's manifest: version, and every file there with its size. Throws
/// std::runtime_error naming the file and what is wrong with it.
wire::Manifest read_manifest(const std::filesystem::path& checkpoint);

/// The complete checkpoint of a run's folder with the most updates; empty when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run_folder);

} // namespace troupe::actors
