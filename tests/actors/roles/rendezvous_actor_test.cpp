#include "tests/actor_fixture.hpp"

#include <future>

#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "actors/protocol/messages.pb.h"
#include "actors/roles/actor_store.hpp"
#include "actors/roles/rendezvous_actor.hpp"

namespace troupe::actors {
namespace {

using Request = wire::StoreRequest;

ProtoBytes request(Request::Operation operation, std::vector<std::string> keys,
                   const std::string& value = {}, const std::string& expected = {},
                   std::int64_t number = 0, std::int64_t patience_ms = 1000) {
  Request made;
  made.set_operation(operation);
  made.mutable_keys()->Assign(keys.begin(), keys.end());
  made.set_value(value);
  made.set_expected(expected);
  made.set_number(number);
  made.set_patience_ms(patience_ms);
  return encode(made);
}

struct RendezvousFixture : tests::ActorFixture {
  RendezvousActor store = system.spawn(rendezvous_actor);

  ~RendezvousFixture() { end(); }
  void end() {
    self->send_exit(store, caf::exit_reason::user_shutdown);
    deliver_all();
  }

  template <class... Args>
  wire::StoreAnswer answer(Args&&... args) {
    return decode<wire::StoreAnswer>(
        ask<ProtoBytes>(store, store_atom_v, request(std::forward<Args>(args)...)));
  }

  std::string refusal(const ProtoBytes& asked) {
    auto pending = self->request(store, caf::infinite, store_atom_v, asked);
    deliver_all();
    std::string why;
    pending.receive([](const ProtoBytes&) {},
                    [&](const caf::error& error) { why = explain(system, error); });
    return why;
  }

  auto waiting(const ProtoBytes& asked) {
    auto pending = self->request(store, caf::infinite, store_atom_v, asked);
    deliver_all();
    return pending;
  }
};

TEST_CASE_FIXTURE(RendezvousFixture,
                  "A request that waits for keys is answered when the last key is set") {
  auto value = waiting(request(Request::GET, {"a"}));
  auto both = waiting(request(Request::WAIT, {"a", "b"}));
  answer(Request::SET, std::vector<std::string>{"a"}, "one");
  value.receive(
      [](const ProtoBytes& got) { CHECK(decode<wire::StoreAnswer>(got).value() == "one"); },
      [](const caf::error&) { FAIL("refused"); });
  CHECK_FALSE(self->has_next_message());
  answer(Request::ADD, std::vector<std::string>{"b"}, "", "", std::int64_t{3});
  both.receive([](const ProtoBytes&) {}, [](const caf::error&) { FAIL("refused"); });
  CHECK(answer(Request::GET, std::vector<std::string>{"b"}).value() == "3");
}

TEST_CASE_FIXTURE(
    RendezvousFixture,
    "A request that exceeds its patience fails, and the error names the missing key") {
  auto pending = waiting(request(Request::WAIT, {"a", "b"}));
  answer(Request::SET, std::vector<std::string>{"a"}, "one");
  scheduler.clock().advance_time(std::chrono::milliseconds(999));
  deliver_all();
  CHECK_FALSE(self->has_next_message());
  scheduler.clock().advance_time(std::chrono::milliseconds(1));
  deliver_all();
  std::string why;
  pending.receive([](const ProtoBytes&) {},
                  [&](const caf::error& error) { why = explain(system, error); });
  CHECK(why.find("nobody said \"b\" in time") != std::string::npos);
  answer(Request::SET, std::vector<std::string>{"b"}, "two"); // no request waits for it now
  CHECK(answer(Request::COUNT, std::vector<std::string>{}).number() == 2);
}

TEST_CASE_FIXTURE(RendezvousFixture, "A waiting request fails when the learners end") {
  auto pending = waiting(request(Request::GET, {"a"}));
  end();
  std::string why;
  pending.receive([](const ProtoBytes&) {},
                  [&](const caf::error& error) { why = explain(system, error); });
  CHECK(why.find("the learners of this rendezvous have ended") != std::string::npos);
}

TEST_CASE_FIXTURE(RendezvousFixture,
                  "Invalid and oversized requests are refused and change nothing") {
  CHECK(refusal({"garbage"}).find("StoreRequest") != std::string::npos);
  CHECK(refusal(request(Request::SET, {})).find("0 keys") != std::string::npos);
  CHECK(refusal(request(Request::GET, {"a", "b"})).find("2 keys") != std::string::npos);
  CHECK(refusal(request(static_cast<Request::Operation>(77), {"a"})).find("no operation 77")
        != std::string::npos);
  CHECK(refusal(request(Request::GET, {"a"}, "", "", 0, -1)).find("must be from")
        != std::string::npos);
  const std::string large(std::size_t{40} << 20, 'x');
  answer(Request::SET, std::vector<std::string>{"a"}, large);
  CHECK(refusal(request(Request::SET, {"b"}, large)).find("64 MiB") != std::string::npos);
  answer(Request::SET, std::vector<std::string>{"a"}, "small"); // frees the room of the large value
  answer(Request::SET, std::vector<std::string>{"b"}, large);
  answer(Request::REMOVE, std::vector<std::string>{"b"});
  answer(Request::SET, std::vector<std::string>{"c"}, large);
  CHECK(refusal(request(Request::ADD, {"a"}, "", "", 1)).find("not a number") != std::string::npos);
  answer(Request::SET, std::vector<std::string>{"n"}, "9223372036854775807");
  CHECK(refusal(request(Request::ADD, {"n"}, "", "", 1)).find("64 bits") != std::string::npos);
  CHECK(answer(Request::GET, std::vector<std::string>{"n"}).value() == "9223372036854775807");
}

TEST_CASE_FIXTURE(RendezvousFixture, "The number of waiting requests is limited") {
  const auto asked = request(Request::GET, {"never"});
  for (int i = 0; i < 4096; ++i)
    self->request(store, caf::infinite, store_atom_v, asked);
  deliver_all(20'000);
  CHECK(refusal(asked).find("4,096 requests are waiting already") != std::string::npos);
}

RendezvousPort::behavior_type port(RendezvousPort::pointer self, const RendezvousActor& store) {
  return {
      [=](store_atom, const ProtoBytes& life, const ProtoBytes& asked) -> caf::result<ProtoBytes> {
        if (life.bytes != "life 1")
          return caf::make_error(Fault::bad_request, std::string("another life"));
        return self->delegate(store, store_atom_v, asked);
      }};
}

/// Actors that run on their own threads.
struct StoreFixture {
  SystemConfig config{false};
  caf::actor_system system{config};
  RendezvousActor store = system.spawn(rendezvous_actor);
  RendezvousPort head = system.spawn(port, store);

  ~StoreFixture() {
    caf::anon_send_exit(head, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(store, caf::exit_reason::user_shutdown);
  }
  c10::intrusive_ptr<c10d::Store>
  client(const std::string& life = "life 1",
         std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    return c10::make_intrusive<ActorStore>(system, head, ProtoBytes{life}, timeout);
  }
};

TEST_CASE_FIXTURE(StoreFixture,
                  "A message-based store gives the same answers as c10d's HashStore") {
  const auto talk = [](const c10::intrusive_ptr<c10d::Store>& asked) {
    std::vector<std::string> said;
    const auto note = [&](const std::string& what) { said.push_back(what); };
    asked->set("a", "one");
    note(asked->get_to_str("a"));
    asked->set("a", std::string("two\0three", 9));
    note(asked->get_to_str("a"));
    note(std::to_string(asked->add("n", 5)));
    note(std::to_string(asked->add("n", -7)));
    note(std::to_string(asked->add("n", 0)));
    note(asked->compareSet("c", "", "first"));
    note(asked->compareSet("c", "", "second"));
    note(asked->compareSet("c", "first", "third"));
    note(asked->compareSet("d", "not there", "x"));
    note(std::to_string(asked->check({"a", "c"})));
    note(std::to_string(asked->check({"a", "d"})));
    note(std::to_string(asked->deleteKey("a")));
    note(std::to_string(asked->deleteKey("a")));
    note(std::to_string(asked->getNumKeys()));
    asked->wait({"n", "c"});
    return said;
  };
  CHECK(talk(client()) == talk(c10::make_intrusive<c10d::HashStore>()));
}

TEST_CASE_FIXTURE(StoreFixture,
                  "A client waits for a key that another client sets under the same prefix") {
  auto got = std::async(std::launch::async, [this] {
    return c10::make_intrusive<c10d::PrefixStore>("group", client())->get_to_str("address");
  });
  client()->set("address", "elsewhere");
  c10::make_intrusive<c10d::PrefixStore>("group", client()->clone())->set("address", "here");
  CHECK(got.get() == "here");
}

TEST_CASE_FIXTURE(StoreFixture, "A missing key and a client of another incarnation cause errors") {
  CHECK_THROWS_WITH_AS(client("life 1", std::chrono::milliseconds(1))->get("never"),
                       doctest::Contains("rendezvous, GET never: nobody said \"never\" in time"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(client("life 0")->set("a", "b"), doctest::Contains("another life"),
                       std::runtime_error);
  CHECK(client()->getNumKeys() == 0);
}

} // namespace
} // namespace troupe::actors
