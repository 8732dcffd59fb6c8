#include "actors/roles/actor_store.hpp"

#include "actors/protocol/system.hpp"

namespace troupe::actors {
namespace {

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

wire::StoreRequest request_of(wire::StoreRequest::Operation operation,
                              const std::vector<std::string>& keys,
                              std::chrono::milliseconds patience = std::chrono::milliseconds(0)) {
  wire::StoreRequest request;
  request.set_operation(operation);
  request.mutable_keys()->Assign(keys.begin(), keys.end());
  request.set_patience_ms(patience.count());
  return request;
}

} // namespace

ActorStore::ActorStore(caf::actor_system& system, RendezvousPort head, ProtoBytes life,
                       std::chrono::milliseconds timeout)
    : Store(timeout), system_(system), head_(std::move(head)), life_(std::move(life)) {}

ActorStore::Answer ActorStore::ask(const wire::StoreRequest& request) {
  ProtoBytes got;
  std::string problem;
  caf::scoped_actor self(system_, true);
  self->request(head_, std::chrono::milliseconds(request.patience_ms()) + kRequestDeadline,
                store_atom_v, life_, encode(request))
      .receive([&](ProtoBytes& answer) { got = std::move(answer); },
               [&](const caf::error& error) { problem = explain(system_, error); });
  if (!problem.empty())
    throw std::runtime_error("the learners' rendezvous, "
                             + wire::StoreRequest::Operation_Name(request.operation()) + " "
                             + (request.keys_size() > 0 ? request.keys(0) : "") + ": " + problem);
  const auto made = decode<wire::StoreAnswer>(got);
  return {{made.value().begin(), made.value().end()}, made.number()};
}

c10::intrusive_ptr<c10d::Store> ActorStore::clone() {
  return c10::make_intrusive<ActorStore>(system_, head_, life_, timeout_);
}

void ActorStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  auto request = request_of(wire::StoreRequest::SET, {key});
  request.set_value(text_of(value));
  ask(request);
}

std::vector<std::uint8_t> ActorStore::compareSet(const std::string& key,
                                                 const std::vector<std::uint8_t>& expected,
                                                 const std::vector<std::uint8_t>& value) {
  auto request = request_of(wire::StoreRequest::COMPARE_AND_SET, {key});
  request.set_expected(text_of(expected));
  request.set_value(text_of(value));
  return ask(request).value;
}

std::vector<std::uint8_t> ActorStore::get(const std::string& key) {
  return ask(request_of(wire::StoreRequest::GET, {key}, timeout_)).value;
}

std::int64_t ActorStore::add(const std::string& key, std::int64_t value) {
  auto request = request_of(wire::StoreRequest::ADD, {key});
  request.set_number(value);
  return ask(request).number;
}

bool ActorStore::deleteKey(const std::string& key) {
  return ask(request_of(wire::StoreRequest::REMOVE, {key})).number != 0;
}

bool ActorStore::check(const std::vector<std::string>& keys) {
  return ask(request_of(wire::StoreRequest::CHECK, keys)).number != 0;
}

std::int64_t ActorStore::getNumKeys() {
  return ask(request_of(wire::StoreRequest::COUNT, {})).number;
}

void ActorStore::wait(const std::vector<std::string>& keys) {
  wait(keys, timeout_);
}

void ActorStore::wait(const std::vector<std::string>& keys,
                      const std::chrono::milliseconds& timeout) {
  if (!keys.empty())
    ask(request_of(wire::StoreRequest::WAIT, keys, timeout));
}

} // namespace troupe::actors
