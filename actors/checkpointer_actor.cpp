#include "actors/checkpointer_actor.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "actors/system.hpp"

namespace troupe::actors {

const char* CheckpointerState::name = "checkpointer";

namespace fs = std::filesystem;

namespace {

using Self = CheckpointerActor::stateful_pointer<CheckpointerState>;
constexpr int kVersion = 1;

void write_manifest(CheckpointerState& state) {
  for (const auto& entry : fs::recursive_directory_iterator(state.partial)) {
    if (!entry.is_regular_file())
      continue;
    auto* file = state.manifest.add_files();
    file->set_name(fs::relative(entry.path(), state.partial).string());
    file->set_bytes(static_cast<std::int64_t>(entry.file_size()));
  }
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(state.manifest, &text, options);
  std::ofstream out(state.partial / "manifest.json");
  out << text;
  out.close();
  if (!status.ok() || !out)
    throw std::runtime_error("cannot write " + (state.partial / "manifest.json").string()
                             + ": is the disk full?");
}

bool is_number(const std::string& name) {
  return !name.empty() && name.size() < 19
         && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::pair<std::int64_t, fs::path>> complete_ones(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename().string();
        is_number(name) && fs::exists(entry.path() / "manifest.json"))
      found.emplace_back(std::stoll(name), entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

void finish(Self self) {
  auto& state = self->state;
  auto promise = std::move(*state.promise);
  state.promise.reset();
  try {
    write_manifest(state);
    fs::remove_all(state.complete); // one of the same number, from before a resumption
    fs::rename(state.partial, state.complete);
    auto found = complete_ones(state.complete.parent_path());
    for (std::size_t i = 0; i + static_cast<std::size_t>(state.keep) < found.size(); ++i)
      fs::remove_all(found[i].second);
    promise.deliver(state.complete.string());
  } catch (const std::exception& e) {
    std::error_code ignored;
    fs::remove_all(state.partial, ignored);
    promise.deliver(failure(e));
  }
}

void part_failed(Self self, const caf::error& error) {
  auto& state = self->state;
  if (!state.promise)
    return;
  auto promise = std::move(*state.promise);
  state.promise.reset();
  std::error_code ignored;
  fs::remove_all(state.partial, ignored);
  promise.deliver(error);
}

void begin(Self self, const std::string& folder, const Encoded& run_state) {
  auto& state = self->state;
  state.manifest.Clear();
  state.manifest.set_version(kVersion);
  *state.manifest.mutable_state() = decode<wire::RunState>(run_state);
  const auto number = std::to_string(state.manifest.state().updates());
  state.complete = fs::path(folder) / number;
  state.partial = fs::path(folder) / ("." + number + ".partial");
  fs::remove_all(state.partial);
  fs::create_directories(state.partial / "replay");
}

} // namespace

fs::path part_path(const fs::path& checkpoint, Role role, std::int32_t index) {
  const std::string number = std::to_string(index);
  if (role == Role::replay)
    return checkpoint / "replay" / ("shard-" + number + ".troupe");
  if (role == Role::environment)
    return checkpoint / ("environment-" + number + ".state");
  return checkpoint;
}

wire::Manifest read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  wire::Manifest manifest;
  if (!in || !google::protobuf::util::JsonStringToMessage(text.str(), &manifest).ok())
    throw std::runtime_error(path.string() + " is missing or no manifest: " + checkpoint.string()
                             + " is no complete checkpoint");
  if (manifest.version() != kVersion)
    throw std::runtime_error(path.string() + " has version " + std::to_string(manifest.version())
                             + ", this program reads " + std::to_string(kVersion));
  for (const auto& file : manifest.files()) {
    std::error_code error;
    const auto size = fs::file_size(checkpoint / file.name(), error);
    if (error || size != static_cast<std::uintmax_t>(file.bytes()))
      throw std::runtime_error((checkpoint / file.name()).string() + " should have "
                               + std::to_string(file.bytes()) + " bytes and "
                               + (error ? std::string("is missing") : "has " + std::to_string(size))
                               + "; use an older checkpoint of the run");
  }
  return manifest;
}

fs::path latest_checkpoint(const fs::path& run_folder) {
  const auto found = complete_ones(run_folder / "checkpoints");
  return found.empty() ? fs::path() : found.back().second;
}

CheckpointerActor::behavior_type checkpointer_actor(Self self, bool with_replay, int keep) {
  self->state.with_replay = with_replay;
  self->state.keep = keep;
  return {
      [self](subscribe_atom, std::uint8_t role, std::int32_t index, const caf::actor& who) {
        self->state.parts[{static_cast<Role>(role), index}] = who;
      },
      [self](save_atom, const std::string& folder,
             const Encoded& run_state) -> caf::result<std::string> {
        auto& state = self->state;
        if (state.promise)
          return caf::make_error(Fault::bad_request,
                                 std::string("a checkpoint is being written already"));
        try {
          begin(self, folder, run_state);
        } catch (const std::exception& e) {
          return failure(e);
        }
        auto promise = self->make_response_promise<std::string>();
        state.promise = promise;
        state.missing = 0;
        const std::uint64_t serial =
            ++state.serial; // answers to an earlier, failed one do not count
        for (const auto& [key, who] : state.parts) {
          if (key.first == Role::evaluator || (key.first == Role::replay && !state.with_replay))
            continue;
          ++state.missing;
          self->request(who, kRequestDeadline, save_atom_v,
                        part_path(state.partial, key.first, key.second).string())
              .then(
                  [self, serial](done_atom) {
                    if (serial == self->state.serial && --self->state.missing == 0
                        && self->state.promise)
                      finish(self);
                  },
                  [self, serial](caf::error& error) {
                    if (serial == self->state.serial)
                      part_failed(self, error);
                  });
        }
        return promise;
      },
  };
}

} // namespace troupe::actors
