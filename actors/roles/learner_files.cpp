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

constexpr const char* kParameters = "learner";
constexpr const char* kOptimizer = "optimizer";
constexpr const char* kWriter = "writer.txt"; // of a snapshot: replica, incarnation

/// The files of replica 0, and those of snapshots, have no number.
std::string part_name(const std::string& what, int replica) {
  return what + (replica == 0 ? std::string() : "-" + std::to_string(replica)) + ".safetensors";
}

/// Returns the replica's file, or replica 0's if it has none: there were fewer replicas, or this is
/// another replica's snapshot.
fs::path saved_part(const fs::path& folder, const char* what, int replica) {
  const fs::path own = folder / part_name(what, replica);
  return fs::exists(own) ? own : folder / part_name(what, 0);
}

learner::TensorMap copies(const learner::TensorMap& tensors) {
  learner::TensorMap made;
  for (const auto& [name, tensor] : tensors)
    made[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true).contiguous();
  return made;
}

/// `number`: the replica in the files' names.
void write_files(const LearnerWrite& write, const fs::path& folder, int number) {
  const std::map<std::string, std::string> about{{"updates", std::to_string(write.updates)},
                                                 {"replica", std::to_string(write.replica)}};
  if (write.parameters)
    learner::write_safetensors(folder / part_name(kParameters, number), write.parameter_tensors,
                               about);
  learner::write_safetensors(folder / part_name(kOptimizer, number), write.optimizer_tensors,
                             about);
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
  write_files(write, partial, 0);
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
                     .parameters =
                         snapshot || state.options.replica == 0 || state.context->own_parameters(),
                     .parameter_tensors = {},
                     .optimizer_tensors = copies(state.replica->optimizer_state()),
                     .updates = state.updates,
                     .replica = state.options.replica,
                     .incarnation = state.options.incarnation};
  write.optimizer_tensors.merge(state.context->rule_state());
  if (write.parameters)
    write.parameter_tensors = copies(state.replica->parameters());
  return write;
}

void write_learner(const LearnerWrite& write) {
  if (write.snapshot)
    write_snapshot_files(write);
  else
    write_files(write, write.folder, write.replica);
}

SavedLearner read_learner(const fs::path& folder, int replica, const learner::TensorMap& own,
                          bool own_parameters) {
  const fs::path parameter_file = saved_part(folder, kParameters, own_parameters ? replica : 0);
  auto parameters = learner::read_safetensors(parameter_file);
  const fs::path file = saved_part(folder, kOptimizer, replica);
  auto optimizer = learner::read_safetensors(file);
  const auto updates = parameters.metadata.find("updates");
  if (updates == parameters.metadata.end())
    throw std::runtime_error(parameter_file.string()
                             + " does not say after how many updates it was written; it is not a "
                               "checkpoint of a run");
  const auto whose = optimizer.metadata.find("replica");
  const bool mine = whose == optimizer.metadata.end()
                        ? file == folder / part_name(kOptimizer, replica)
                        : whose->second == std::to_string(replica);
  for (const auto& [name, tensor] : own)
    if (!mine && name.starts_with("random.") && optimizer.tensors.contains(name))
      optimizer.tensors[name] = tensor;
  return {.parameters = std::move(parameters.tensors),
          .optimizer = std::move(optimizer.tensors),
          .updates = std::stoll(updates->second)};
}

std::int64_t load_learner(LearnerState& state, const fs::path& folder) {
  auto saved = read_learner(folder, state.options.replica, state.replica->optimizer_state(),
                            state.context->own_parameters());
  state.context->load_rule_state(saved.optimizer, saved.updates);
  state.replica->load(saved.parameters, saved.optimizer);
  state.context->on_parameters_restored();
  return saved.updates;
}

} // namespace troupe::actors
