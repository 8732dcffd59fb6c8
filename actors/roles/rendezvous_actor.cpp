#include "actors/roles/rendezvous_actor.hpp"

#include <algorithm>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/system.hpp"
#include "env/text/number_in.hpp"

namespace troupe::actors {

const char* RendezvousState::name = "rendezvous";

namespace {

using RendezvousSelf = RendezvousActor::stateful_pointer<RendezvousState>;
using Operation = wire::StoreRequest;

constexpr std::size_t kMostStoredBytes = std::size_t{64} << 20;
constexpr std::size_t kMostKeys = 65'536;
constexpr std::size_t kMostWaiting = 4'096;
constexpr std::int64_t kLongestPatience = 24 * 3600 * 1000; // ms

void require_rule(bool held, const std::string& rule) {
  if (!held)
    throw std::invalid_argument("rendezvous: " + rule);
}

bool has_all(const RendezvousState& state, const std::vector<std::string>& keys) {
  return std::all_of(keys.begin(), keys.end(),
                     [&](const auto& key) { return state.values.contains(key); });
}

ProtoBytes answer(std::int64_t number, const std::string& value = {}) {
  wire::StoreAnswer made;
  made.set_number(number);
  made.set_value(value);
  return encode(made);
}

ProtoBytes found(const RendezvousState& state, const RendezvousState::Waiter& waiter) {
  return answer(1, waiter.wants_value ? state.values.at(waiter.keys.front()) : std::string());
}

void store(RendezvousState& state, const std::string& key, const std::string& value) {
  const auto before = state.values.find(key);
  const bool is_new = before == state.values.end();
  const auto bytes =
      state.bytes + value.size() + (is_new ? key.size() : 0) - (is_new ? 0 : before->second.size());
  require_rule(bytes <= kMostStoredBytes && state.values.size() + (is_new ? 1 : 0) <= kMostKeys,
               "it would hold more than 64 MiB or 65,536 keys; it is for addresses, not for data");
  state.bytes = bytes;
  state.values[key] = value;
  for (auto at = state.waiting.begin(); at != state.waiting.end();)
    if (has_all(state, at->second.keys)) {
      at->second.promise.deliver(found(state, at->second));
      at = state.waiting.erase(at);
    } else {
      ++at;
    }
}

std::int64_t add(RendezvousState& state, const std::string& key, std::int64_t number) {
  std::int64_t sum = 0;
  if (const auto at = state.values.find(key); at != state.values.end()) {
    const auto before = env::number_in<std::int64_t>(at->second);
    require_rule(before.has_value(),
                 "the value of " + key + " is not a number, so nothing can be added to it");
    sum = *before;
  }
  require_rule(!__builtin_add_overflow(sum, number, &sum),
               "the sum at " + key + " exceeds 64 bits");
  store(state, key, std::to_string(sum));
  return sum;
}

std::string compare_and_set(RendezvousState& state, const std::string& key,
                            const std::string& expected, const std::string& value) {
  const auto at = state.values.find(key);
  if (at == state.values.end() && !expected.empty())
    return expected; // as TCPStore does
  if (at != state.values.end() && at->second != expected)
    return at->second;
  store(state, key, value);
  return value;
}

bool remove(RendezvousState& state, const std::string& key) {
  const auto at = state.values.find(key);
  if (at == state.values.end())
    return false;
  state.bytes -= key.size() + at->second.size();
  state.values.erase(at);
  return true;
}

caf::result<ProtoBytes> wait(RendezvousSelf self, std::vector<std::string> keys, bool wants_value,
                             std::int64_t patience_ms) {
  auto& state = self->state;
  require_rule(patience_ms >= 0 && patience_ms <= kLongestPatience,
               "a timeout of " + std::to_string(patience_ms) + " ms; it must be from 0 to one day");
  require_rule(state.waiting.size() < kMostWaiting, "4,096 requests are waiting already");
  RendezvousState::Waiter waiter{std::move(keys), wants_value,
                                 self->make_response_promise<ProtoBytes>()};
  auto promise = waiter.promise;
  state.waiting.emplace(++state.questions, std::move(waiter));
  self->delayed_send(self, std::chrono::milliseconds(patience_ms), tick_atom_v, state.questions);
  return promise;
}

caf::result<ProtoBytes> reply(RendezvousSelf self, const wire::StoreRequest& asked) {
  auto& state = self->state;
  std::vector<std::string> keys(asked.keys().begin(), asked.keys().end());
  const auto operation = asked.operation();
  if (operation == Operation::COUNT)
    return answer(static_cast<std::int64_t>(state.values.size()));
  if (operation == Operation::CHECK)
    return answer(has_all(state, keys) ? 1 : 0);
  require_rule(!keys.empty() && (keys.size() == 1 || operation == Operation::WAIT),
               std::to_string(keys.size()) + " keys were given where one is expected");
  switch (operation) {
  case Operation::SET:
    store(state, keys[0], asked.value());
    return answer(1);
  case Operation::ADD:
    return answer(add(state, keys[0], asked.number()));
  case Operation::COMPARE_AND_SET:
    return answer(1, compare_and_set(state, keys[0], asked.expected(), asked.value()));
  case Operation::REMOVE:
    return answer(remove(state, keys[0]) ? 1 : 0);
  case Operation::GET:
  case Operation::WAIT: {
    const bool wants_value = operation == Operation::GET;
    if (has_all(state, keys))
      return answer(1, wants_value ? state.values.at(keys[0]) : std::string());
    return wait(self, std::move(keys), wants_value, asked.patience_ms());
  }
  default:
    break;
  }
  throw std::invalid_argument("rendezvous: there is no operation "
                              + std::to_string(static_cast<int>(operation)));
}

/// Returns the first missing key, or "".
std::string missing(const RendezvousState& state, const RendezvousState::Waiter& waiter) {
  for (const auto& key : waiter.keys)
    if (!state.values.contains(key))
      return key;
  return {};
}

} // namespace

RendezvousActor::behavior_type rendezvous_actor(RendezvousSelf self) {
  self->set_exit_handler([self](caf::exit_msg& why) {
    for (auto& [number, waiter] : std::exchange(self->state.waiting, {}))
      waiter.promise.deliver(caf::make_error(
          Fault::stopping, std::string("the learners of this rendezvous have ended")));
    self->quit(std::move(why.reason));
  });
  return {
      [self](store_atom, const ProtoBytes& request) -> caf::result<ProtoBytes> {
        try {
          return reply(self, decode<wire::StoreRequest>(request));
        } catch (const std::exception& e) {
          return caf::make_error(Fault::bad_request, std::string(e.what()));
        }
      },
      [self](tick_atom, std::uint64_t number) {
        auto& state = self->state;
        const auto at = state.waiting.find(number);
        if (at == state.waiting.end())
          return;
        auto waiter = std::move(at->second);
        state.waiting.erase(at);
        waiter.promise.deliver(
            caf::make_error(Fault::late, "nobody said \"" + missing(state, waiter) + "\" in time"));
      },
  };
}

} // namespace troupe::actors
