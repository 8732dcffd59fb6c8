#include "actors/roles/learner_files.hpp"

#include <fstream>
#include <map>
#include <stdexcept>

#include "actors/roles/files.hpp"
#include "env/whole_file.hpp"
#include "learner/device/safetensors.hpp"

namespace troupe::actors {

namespace fs = std::filesystem;

namespace {

constexpr const char* kParameters = "learner.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors"; // of replica 0, and of snapshots
constexpr const char* kWriter = "writer.txt";               // of a snapshot: replica, incarnation

std::string optimizer_name(int replica) {
  return replica == 0 ? kOptimizer : "optimizer-" + std::to_string(replica) + ".safetensors";
}

learner::TensorMap copies(const learner::TensorMap& tensors) {
  learner::TensorMap made;
  for (const auto& [name, tensor] : tensors)
    made[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true).contiguous();
  return made;
}

void write_files(const LearnerWrite& write, const fs::path& folder, const std::string& optimizer) {
  const std::map<std::string, std::string> about{{"updates", std::to_string(write.updates)},
                                                 {"replica", std::to_string(write.replica)}};
  if (write.parameters)
    learner::write_safetensors(folder / kParameters, write.parameter_tensors, about);
  learner::write_safetensors(folder / optimizer, write.optimizer_tensors, about);
}

/// Whether a later incarnation of the replica has written a snapshot.
bool is_superseded(const LearnerWrite& write) {
  for (const auto& [number, path] : numbered_folders(write.folder)) {
    int replica = -1;
    std::uint64_t incarnation = 0;
    std::ifstream writer(path / kWriter);
    if (writer >> replica >> incarnation && replica == write.replica
        && incarnation > write.incarnation)
      return true;
  }
  return false;
}

/// Removes all snapshots except `complete`, and unfinished ones of earlier incarnations of the
/// replica.
void remove_others(const LearnerWrite& write, const fs::path& complete) {
  const std::string unfinished = ".partial-" + std::to_string(write.replica) + "-";
  std::vector<fs::path> others;
  for (const auto& [number, path] : numbered_folders(write.folder))
    if (path != complete)
      others.push_back(path);
  for (const auto& entry : fs::directory_iterator(write.folder))
    if (entry.path().filename().string().starts_with(unfinished))
      others.push_back(entry.path());
  for (const fs::path& path : others)
    fs::remove_all(path);
}

/// An incarnation that was declared dead may still be writing when its successor does. Each writes
/// into a separate folder, and the earlier one gives up.
void write_snapshot_files(const LearnerWrite& write) {
  const std::string writer =
      std::to_string(write.replica) + "-" + std::to_string(write.incarnation);
  const fs::path partial = write.folder / (".partial-" + writer);
  const fs::path complete = write.folder / std::to_string(write.updates);
  if (is_superseded(write))
    return;
  fs::remove_all(partial);
  fs::create_directories(partial);
  std::ofstream(partial / kWriter) << write.replica << ' ' << write.incarnation << '\n';
  write_files(write, partial, kOptimizer);
  if (is_superseded(write)) { // another one was written meanwhile
    fs::remove_all(partial);
    return;
  }
  if (fs::exists(complete)) // an earlier incarnation made as many updates
    exchange(partial, complete);
  else
    fs::rename(partial, complete);
  env::write_folder_to_disk(write.folder); // before an old snapshot is removed
  remove_others(write, complete);
}

} // namespace

LearnerWrite captured(const LearnerState& state, const fs::path& folder, bool snapshot) {
  LearnerWrite write{.folder = folder,
                     .snapshot = snapshot,
                     .parameters = snapshot || state.options.replica == 0,
                     .parameter_tensors = {},
                     .optimizer_tensors = copies(state.replica->optimizer_state()),
                     .updates = state.updates,
                     .replica = state.options.replica,
                     .incarnation = state.options.incarnation};
  if (write.parameters)
    write.parameter_tensors = copies(state.replica->parameters());
  return write;
}

void write_learner(const LearnerWrite& write) {
  if (write.snapshot)
    write_snapshot_files(write);
  else
    write_files(write, write.folder, optimizer_name(write.replica));
}

SavedLearner read_learner(const fs::path& folder, int replica, const learner::TensorMap& own) {
  auto parameters = learner::read_safetensors(folder / kParameters);
  fs::path file = folder / optimizer_name(replica);
  if (!fs::exists(file)) // there were fewer replicas, or this is another replica's snapshot
    file = folder / kOptimizer;
  auto optimizer = learner::read_safetensors(file);
  const auto updates = parameters.metadata.find("updates");
  if (updates == parameters.metadata.end())
    throw std::runtime_error((folder / kParameters).string()
                             + " does not say after how many updates it was written; it is not a "
                               "checkpoint of a run");
  const auto whose = optimizer.metadata.find("replica");
  const bool mine = whose == optimizer.metadata.end() ? file == folder / optimizer_name(replica)
                                                      : whose->second == std::to_string(replica);
  for (const auto& [name, tensor] : own)
    if (!mine && name.starts_with("random.") && optimizer.tensors.contains(name))
      optimizer.tensors[name] = tensor;
  return {.parameters = std::move(parameters.tensors),
          .optimizer = std::move(optimizer.tensors),
          .updates = std::stoll(updates->second)};
}

} // namespace troupe::actors
