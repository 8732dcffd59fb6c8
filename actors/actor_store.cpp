#include "actors/actor_store.hpp"

#include "actors/messages.pb.h"
#include "actors/system.hpp"

namespace troupe::actors {
namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

} // namespace

ActorStore::ActorStore(caf::actor_system& system, RendezvousPort head, Encoded life,
                       std::chrono::milliseconds timeout)
    : Store(timeout), system_(system), head_(std::move(head)), life_(std::move(life)) {}

template <class Fill>
ActorStore::Answer ActorStore::ask(const char* what, Fill fill,
                                   std::chrono::milliseconds patience) {
  wire::StoreRequest request;
  fill(request);
  request.set_patience_ms(patience.count());
  Encoded got;
  std::string problem;
  caf::scoped_actor self(system_, true);
  self->request(head_, patience + kRequestDeadline, store_atom_v, life_, encode(request))
      .receive([&](Encoded& answer) { got = std::move(answer); },
               [&](const caf::error& error) { problem = explain(system_, error); });
  if (!problem.empty())
    throw std::runtime_error(std::string("the learners' rendezvous, ") + what + " "
                             + (request.keys_size() > 0 ? request.keys(0) : "") + ": " + problem);
  const auto made = decode<wire::StoreAnswer>(got);
  return {{made.value().begin(), made.value().end()}, made.number()};
}

c10::intrusive_ptr<c10d::Store> ActorStore::clone() {
  return c10::make_intrusive<ActorStore>(system_, head_, life_, timeout_);
}

void ActorStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  ask("set", [&](wire::StoreRequest& request) {
    request.set_operation(wire::StoreRequest::SET);
    request.add_keys(key);
    request.set_value(text_of(value));
  });
}

std::vector<std::uint8_t> ActorStore::compareSet(const std::string& key,
                                                 const std::vector<std::uint8_t>& expected,
                                                 const std::vector<std::uint8_t>& value) {
  return ask("compareSet",
             [&](wire::StoreRequest& request) {
               request.set_operation(wire::StoreRequest::COMPARE_AND_SET);
               request.add_keys(key);
               request.set_expected(text_of(expected));
               request.set_value(text_of(value));
             })
      .value;
}

std::vector<std::uint8_t> ActorStore::get(const std::string& key) {
  return ask(
             "get",
             [&](wire::StoreRequest& request) {
               request.set_operation(wire::StoreRequest::GET);
               request.add_keys(key);
             },
             timeout_)
      .value;
}

std::int64_t ActorStore::add(const std::string& key, std::int64_t value) {
  return ask("add",
             [&](wire::StoreRequest& request) {
               request.set_operation(wire::StoreRequest::ADD);
               request.add_keys(key);
               request.set_number(value);
             })
      .number;
}

bool ActorStore::deleteKey(const std::string& key) {
  return ask("deleteKey",
             [&](wire::StoreRequest& request) {
               request.set_operation(wire::StoreRequest::REMOVE);
               request.add_keys(key);
             })
             .number
         != 0;
}

bool ActorStore::check(const std::vector<std::string>& keys) {
  return ask("check",
             [&](wire::StoreRequest& request) {
               request.set_operation(wire::StoreRequest::CHECK);
               request.mutable_keys()->Assign(keys.begin(), keys.end());
             })
             .number
         != 0;
}

std::int64_t ActorStore::getNumKeys() {
  return ask("getNumKeys",
             [](wire::StoreRequest& request) { request.set_operation(wire::StoreRequest::COUNT); })
      .number;
}

void ActorStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void ActorStore::wait(const std::vector<std::string>& keys,
                      const std::chrono::milliseconds& timeout) {
  if (keys.empty())
    return;
  ask(
      "wait",
      [&](wire::StoreRequest& request) {
        request.set_operation(wire::StoreRequest::WAIT);
        request.mutable_keys()->Assign(keys.begin(), keys.end());
      },
      timeout);
}

} // namespace troupe::actors
