#include "actors/run/checkpointer_actor.hpp"

#include "actors/protocol/system.hpp"

namespace troupe::actors {

const char* CheckpointerState::name = "checkpointer";

namespace fs = std::filesystem;

namespace {

using CheckpointerSelf = CheckpointerActor::stateful_pointer<CheckpointerState>;

void end(CheckpointerState& state, const caf::error& failure) {
  state.complete.clear();
  state.missing.clear();
  state.failure = failure;
  ++state.serial; // later answers are ignored
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

void on_committed(CheckpointerState& state, const caf::error& problem) {
  std::error_code ignored;
  if (!problem || fs::exists(state.complete / "manifest.json", ignored))
    state.last = state.complete;
  end(state, problem);
}

/// Commits on a separate thread, because it reads every file once for its checksum.
void commit(CheckpointerSelf self) {
  const auto& state = self->state;
  const auto worker = self->spawn<caf::detached>(
      [partial = state.partial, complete = state.complete, manifest = state.manifest,
       options = state.options](caf::event_based_actor* thread) -> caf::behavior {
        return {[=](written_atom) {
          thread->quit();
          return done_or_fault([&] {
            commit_checkpoint(partial, complete, manifest);
            remove_surplus(complete.parent_path(), options.keep, options.keep_best);
          });
        }};
      });
  self->request(worker, kWriteDeadline, written_atom_v)
      .then([self](done_atom) { on_committed(self->state, {}); },
            [self](const caf::error& problem) { on_committed(self->state, problem); });
}

/// Sends a request to the actors of these parts and calls `then` when all have answered.
template <class Wanted, class Ask, class Then>
void ask_parts(CheckpointerSelf self, Wanted wanted, Ask ask, Then then) {
  auto& state = self->state;
  const std::uint64_t serial = ++state.serial; // answers to an earlier, failed request are ignored
  const auto answered = [self, serial, then](const auto& key) {
    if (serial != self->state.serial)
      return;
    self->state.missing.erase(key);
    if (self->state.missing.empty())
      then(self);
  };
  const auto failed = [self, serial](caf::error& error) {
    if (serial == self->state.serial)
      end(self->state, error);
  };
  for (const auto& [key, who] : state.parts)
    if (wanted(key.first)) {
      state.missing.insert(key);
      ask(key, who).then([answered, key = key](done_atom) { answered(key); }, failed);
    }
  if (state.missing.empty())
    then(self);
}

/// Whether actors of this role write what they have captured while the run continues. The others
/// have written it when they answer.
bool writes_later(const CheckpointerState& state, Role role) {
  return role == Role::learner || (role == Role::replay && state.options.replay);
}

void on_captured(CheckpointerSelf self) {
  std::exchange(self->state.capturing, {})->deliver(done_atom_v);
  ask_parts(
      self, [self](Role role) { return writes_later(self->state, role); },
      [self](const auto&, const caf::actor& who) {
        return self->request(who, kWriteDeadline, written_atom_v);
      },
      [](CheckpointerSelf me) { commit(me); });
}

void begin(CheckpointerSelf self, const std::string& folder, const ProtoBytes& run_state) {
  auto& state = self->state;
  state.manifest.Clear();
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

CheckpointerActor::behavior_type checkpointer_actor(CheckpointerSelf self,
                                                    RunConfig::Checkpoint options) {
  self->state.options = std::move(options);
  return {
      [self](subscribe_atom, Role role, std::int32_t index, const caf::actor& who) {
        self->state.parts[{role, index}] = who;
      },
      [self](lost_atom, Role role, std::int32_t index) {
        auto& state = self->state;
        const ActorKey key{role, index};
        const bool known = state.parts.erase(key) > 0;
        const bool has_more = state.capturing && writes_later(state, key.first);
        if (known && (has_more || state.missing.contains(key)))
          end(state, caf::make_error(Fault::lost, std::string(role_name(key.first)) + " actor "
                                                      + std::to_string(index) + " died meanwhile"));
      },
      [self](load_atom, const std::string& checkpoint) { self->state.last = checkpoint; },
      [self](save_atom, const std::string& folder,
             const ProtoBytes& run_state) -> caf::result<done_atom> {
        auto& state = self->state;
        if (!state.complete.empty())
          return caf::make_error(Fault::bad_request,
                                 std::string("a checkpoint is already being written"));
        try {
          begin(self, folder, run_state);
        } catch (const std::exception& e) {
          end(state, failure(e));
          return failure(e);
        }
        auto promise = self->make_response_promise<done_atom>();
        state.capturing = promise;
        const bool replay = state.options.replay;
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
