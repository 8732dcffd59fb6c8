// The checksums of a checkpoint's files. The program replaces the function of libxxhash that
// computes them, to watch and stop it.
#include "actors/run/checkpointer_actor.hpp"

#include <dlfcn.h>

#include <atomic>
#include <fstream>
#include <latch>

#include "actors/protocol/system.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/temporary_folder.hpp"

namespace {

struct Hashing {
  std::latch begun{1}, may_continue{1};
  std::atomic<bool> first = true;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<std::size_t> largest = 0; // block
};

Hashing& hashing() {
  static Hashing only;
  return only;
}

} // namespace

extern "C" int XXH3_64bits_update(void* state, const void* data, std::size_t size) {
  Hashing& watched = hashing();
  if (watched.first.exchange(false)) {
    watched.begun.count_down();
    watched.may_continue.wait();
  }
  watched.bytes += size;
  watched.largest = std::max(watched.largest.load(), size);
  using Update = int (*)(void*, const void*, std::size_t);
  static const auto real = reinterpret_cast<Update>(::dlsym(RTLD_NEXT, "XXH3_64bits_update"));
  return real(state, data, size);
}

namespace troupe::actors {
namespace {

constexpr std::size_t kFileBytes = std::size_t{5} << 20;

/// A learner whose part of a checkpoint is one file.
caf::behavior learner_with_file(caf::event_based_actor*) {
  return {[](save_atom, const std::string& folder) {
            std::ofstream(folder + "/learner") << std::string(kFileBytes, 'x');
            return done_atom_v;
          },
          [](written_atom) { return done_atom_v; }};
}

TEST_CASE("A checkpoint is hashed in blocks of 1 MiB, and its actor answers meanwhile") {
  const TemporaryFolder folder;
  SystemConfig config{false};
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  const auto checkpointer = system.spawn(checkpointer_actor, CheckpointerOptions{});
  const caf::actor learner = system.spawn(learner_with_file);
  self->send(checkpointer, subscribe_atom_v, static_cast<std::uint8_t>(Role::learner), 0, learner);
  wire::RunState state;
  state.set_updates(5);
  const auto save = [&] {
    std::string problem;
    self->request(checkpointer, caf::infinite, save_atom_v, folder.path().string(), encode(state))
        .receive([](done_atom) {},
                 [&](const caf::error& error) { problem = explain(system, error); });
    return problem;
  };
  REQUIRE(save().empty());
  hashing().begun.wait();
  CHECK_FALSE(save().empty()); // refused at once: the first one is being written
  CHECK_FALSE(std::filesystem::exists(folder / "5" / "manifest.json"));
  hashing().may_continue.count_down();
  self->request(checkpointer, caf::infinite, written_atom_v)
      .receive([&](const std::string& path) { CHECK(path == (folder / "5").string()); },
               [&](const caf::error& error) { FAIL(explain(system, error)); });
  CHECK(std::filesystem::exists(folder / "5" / "manifest.json"));
  CHECK(hashing().bytes == kFileBytes);
  CHECK(hashing().largest == std::size_t{1} << 20);
  for (const auto& actor : {caf::actor_cast<caf::actor>(checkpointer), learner})
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

} // namespace
} // namespace troupe::actors
