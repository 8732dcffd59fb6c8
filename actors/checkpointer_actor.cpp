#include "actors/checkpointer_actor.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "actors/ask.hpp"
#include "actors/files.hpp"
#include "actors/run.hpp"
#include "actors/system.hpp"
#include "replay/checkpoint_reader.hpp"

namespace troupe::actors {

const char* CheckpointerState::name = "checkpointer";

namespace fs = std::filesystem;

namespace {

using Self = CheckpointerActor::stateful_pointer<CheckpointerState>;
constexpr int kVersion = 2;
std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

std::string checksum_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  return hexadecimal(replay::checksum_of(std::as_bytes(std::span(bytes))));
}

void write_manifest(CheckpointerState& state) {
  for (const auto& entry : fs::recursive_directory_iterator(state.partial)) {
    if (!entry.is_regular_file())
      continue;
    auto* file = state.manifest.add_files();
    file->set_name(fs::relative(entry.path(), state.partial).string());
    file->set_bytes(static_cast<std::int64_t>(entry.file_size()));
    if (entry.path().parent_path().parent_path()
        != state.partial / "replay") // these check themselves
      file->set_checksum(checksum_of_file(entry.path()));
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

std::vector<std::pair<std::int64_t, fs::path>> complete_ones(const fs::path& folder) {
  auto found = numbered_folders(folder);
  std::erase_if(found, [](const auto& one) { return !fs::exists(one.second / "manifest.json"); });
  return found;
}

void end(CheckpointerState& state, const caf::error& failure) {
  state.complete.clear();
  state.failure = failure;
  ++state.serial; // answers that still come do not count
  std::error_code ignored;
  if (failure)
    fs::remove_all(state.partial, ignored);
  if (state.capturing)
    std::exchange(state.capturing, {})->deliver(failure);
  for (auto& promise : std::exchange(state.waiting, {}))
    if (failure)
      promise.deliver(failure);
    else
      promise.deliver(state.last.string());
}

void complete(CheckpointerState& state) {
  try {
    write_manifest(state);
    fs::remove_all(state.complete); // one of the same number, from before a resumption
    fs::rename(state.partial, state.complete);
    state.last = state.complete;
    auto found = complete_ones(state.complete.parent_path());
    for (std::size_t i = 0; i + static_cast<std::size_t>(state.keep) < found.size(); ++i)
      fs::remove_all(found[i].second);
    end(state, {});
  } catch (const std::exception& e) {
    end(state, failure(e));
  }
}

/// Asks those parts for something; `then` when all have done it.
template <class Wanted, class Ask, class Then>
void ask_parts(Self self, Wanted wanted, Ask ask, Then then) {
  auto& state = self->state;
  state.missing = 0;
  const std::uint64_t serial = ++state.serial; // answers to an earlier, failed one do not count
  const auto answered = [self, serial, then] {
    if (serial == self->state.serial && --self->state.missing == 0)
      then(self);
  };
  const auto failed = [self, serial](caf::error& error) {
    if (serial == self->state.serial)
      end(self->state, error);
  };
  for (const auto& [key, who] : state.parts)
    if (wanted(key.first)) {
      ++state.missing;
      ask(key, who).then([answered](done_atom) { answered(); }, failed);
    }
  if (state.missing == 0)
    then(self);
}

void on_captured(Self self) {
  std::exchange(self->state.capturing, {})->deliver(done_atom_v);
  const bool replay = self->state.with_replay;
  ask_parts(
      self, [replay](Role role) { return replay && role == Role::replay; },
      [self](const auto&, const caf::actor& who) {
        return self->request(who, kWriteDeadline, written_atom_v);
      },
      [](Self me) { complete(me->state); });
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
    return checkpoint / "replay" / ("shard-" + number);
  if (role == Role::parameter_server)
    return checkpoint / "servers";
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

void verify_checkpoint(const fs::path& checkpoint) {
  const wire::Manifest manifest = read_manifest(checkpoint);
  for (const auto& file : manifest.files())
    if (!file.checksum().empty() && checksum_of_file(checkpoint / file.name()) != file.checksum())
      throw std::runtime_error((checkpoint / file.name()).string()
                               + " is damaged: its bytes have another checksum; use an older "
                                 "checkpoint of the run");
  std::error_code none;
  for (const auto& shard : fs::directory_iterator(checkpoint / "replay", none))
    replay::CheckpointReader(shard.path()).verify();
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
      [self](lost_atom, std::uint8_t role, std::int32_t index) {
        auto& state = self->state;
        const bool needed = state.parts.erase({static_cast<Role>(role), index}) > 0
                            && static_cast<Role>(role) != Role::evaluator;
        if (needed && !state.complete.empty())
          end(state, caf::make_error(Fault::lost, std::string(role_name(static_cast<Role>(role)))
                                                      + " actor " + std::to_string(index)
                                                      + " died meanwhile"));
      },
      [self](load_atom, const std::string& checkpoint) { self->state.last = checkpoint; },
      [self](save_atom, const std::string& folder,
             const Encoded& run_state) -> caf::result<done_atom> {
        auto& state = self->state;
        if (!state.complete.empty())
          return caf::make_error(Fault::bad_request,
                                 std::string("a checkpoint is being written already"));
        try {
          begin(self, folder, run_state);
        } catch (const std::exception& e) {
          end(state, failure(e));
          return failure(e);
        }
        auto promise = self->make_response_promise<done_atom>();
        state.capturing = promise;
        const bool replay = state.with_replay;
        ask_parts(
            self,
            [replay](Role role) {
              return role != Role::evaluator && (role != Role::replay || replay);
            },
            [self](const auto& key, const caf::actor& who) {
              const auto& [role, index] = key;
              const std::string path = part_path(self->state.partial, role, index).string();
              const fs::path& last = self->state.last;
              return role == Role::replay
                         ? self->request(who, kRequestDeadline, save_atom_v, path,
                                         last.empty() ? "" : part_path(last, role, index).string())
                         : self->request(who, kRequestDeadline, save_atom_v, path);
            },
            on_captured);
        return promise;
      },
      [self](written_atom) -> caf::result<std::string> {
        auto& state = self->state;
        if (state.complete.empty() && state.failure)
          return state.failure;
        if (state.complete.empty())
          return state.last.string();
        auto promise = self->make_response_promise<std::string>();
        state.waiting.push_back(promise);
        return promise;
      },
  };
}

} // namespace troupe::actors
