#include "actors/roles/parameter_server_actor.hpp"

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/process_time.hpp"
#include "actors/protocol/system.hpp"

namespace troupe::actors {

const char* ParameterServerState::name = "parameter server";

namespace {

ProtoBytes report(const ParameterServerState& state, int shard) {
  const learner::ParameterServerHost& host = *state.host;
  wire::ParameterServerReport made;
  made.set_shard(shard);
  made.set_incarnation(state.incarnation);
  *made.mutable_process() = process_time();
  for (int optimizer = 0; optimizer < host.optimizers(); ++optimizer) {
    const auto counters = host.server_counters(optimizer);
    auto& one = *made.add_optimizers();
    one.set_version(host.version(optimizer));
    one.set_applied(counters.applied);
    one.set_dropped(counters.dropped);
    one.set_staleness_sum(counters.staleness_sum);
    one.set_staleness_most(counters.staleness_most);
    one.set_rate_scale_sum(counters.rate_scale_sum);
  }
  return encode(made);
}

void start(ParameterServerState& state, const learner::ParameterServerHostOptions& options) {
  if (!options.snapshot.empty()) {
    std::filesystem::create_directories(options.snapshot.parent_path());
    if (state.incarnation == 0)
      std::filesystem::remove(options.snapshot);
  }
  state.host = std::make_unique<learner::ParameterServerHost>(*state.context, options);
}

void load(learner::ParameterServerHost& host, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  while (std::filesystem::exists(server_file(folder, static_cast<int>(files.size()))))
    files.push_back(server_file(folder, static_cast<int>(files.size())));
  if (files.empty())
    throw std::runtime_error("'" + server_file(folder, 0).string()
                             + "' is missing: the checkpoint has no parameter servers; use another "
                               "one of the run");
  host.load(files);
}

} // namespace

std::filesystem::path server_file(const std::filesystem::path& folder, int shard) {
  return folder / ("shard-" + std::to_string(shard) + ".safetensors");
}

ParameterServerActor::behavior_type
parameter_server_actor(ParameterServerActor::stateful_pointer<ParameterServerState> self,
                       std::shared_ptr<env::wire::Context> context,
                       learner::ParameterServerHostOptions options, std::uint64_t incarnation) {
  const int shard = options.shard;
  self->state.incarnation = incarnation;
  self->state.context = std::move(context);
  quit_on_fault(self, [&] { start(self->state, options); });
  return {
      [self](hello_atom) { return self->state.host->endpoint(); },
      [self, shard](report_atom) { return report(self->state, shard); },
      [self, shard](save_atom, const std::string& folder) {
        return done_or_fault([&] {
          std::filesystem::create_directories(folder);
          self->state.host->save(server_file(folder, shard));
        });
      },
      [self](load_atom, const std::string& folder) {
        return done_or_fault([&] { load(*self->state.host, folder); });
      },
  };
}

} // namespace troupe::actors
