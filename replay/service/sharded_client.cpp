#include "replay/service/sharded_client.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "env/split_mix.hpp"
#include "replay/chunks/remembered.hpp"
#include "replay/service/rendezvous.hpp"
#include "replay/service/sharded_client_shard.hpp"

namespace troupe::replay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTend{10}; // between checks of all shards
constexpr std::chrono::milliseconds kRest{20}; // while no shard can be used
constexpr std::chrono::milliseconds kAskAgain{1000};
constexpr std::size_t kMostWriters = 4096; // writers whose trajectories are remembered

enum class Begins { no, now, next };

/// Says where an episode begins in an insertion: at its first row, at a later row, or not at all.
Begins episode_begin(const Insertion& insertion) {
  Begins found = Begins::no;
  bool first = true;
  for (const ChunkRows& rows : insertion.rows) {
    if (rows.chunk->encoded())
      continue;
    for (std::uint32_t i = rows.first; i < rows.first + rows.count; ++i, first = false)
      if ((rows.chunk->flags(i) & Chunk::kFirst) != 0)
        found = first ? Begins::now : Begins::next;
  }
  return found;
}

} // namespace

ShardedClient::ShardedClient(env::wire::Context& context, const TransitionSpec& spec,
                             const std::vector<ShardAddress>& shards,
                             const ShardedClientOptions& options)
    : context_(context), spec_(spec), options_(options), random_(options.seed) {
  for (const ShardAddress& shard : shards)
    add(shard);
}

ShardedClient::~ShardedClient() = default;

void ShardedClient::add(const ShardAddress& shard) {
  for (const auto& other : shards_)
    if (other->address.name == shard.name || other->address.endpoint == shard.endpoint)
      throw std::invalid_argument("replay shard " + shard.name + " at " + shard.endpoint
                                  + " exists already, as " + other->address.name + " at "
                                  + other->address.endpoint + "; names and endpoints must differ");
  if (shard.name.empty() || shard.endpoint.empty())
    throw std::invalid_argument("replay shard '" + shard.name + "' at '" + shard.endpoint
                                + "' needs a name and an endpoint, like tcp://127.0.0.1:5555");
  auto made = std::make_unique<Shard>();
  made->address = shard;
  made->number = new_number();
  made->client = std::make_unique<ShardClient>(context_, shard.endpoint, spec_, options_.client);
  shards_.push_back(std::move(made));
  hashes_.push_back(member_hash(shard.name));
}

void ShardedClient::remove(const std::string& name) {
  const auto at = std::find_if(shards_.begin(), shards_.end(),
                               [&](const auto& shard) { return shard->address.name == name; });
  if (at == shards_.end())
    throw std::invalid_argument("no replay shard has the name " + name);
  drop_plan();
  counters_.lost_insertions += static_cast<std::int64_t>((*at)->client->in_flight());
  hashes_.erase(hashes_.begin() + (at - shards_.begin()));
  shards_.erase(at);
}

void ShardedClient::poll() {
  const Time now = Clock::now();
  tended_ = now;
  for (const auto& shard : shards_)
    look_after(*shard, now);
}

void ShardedClient::tend(Time now) {
  if (now - tended_ >= kTend)
    poll();
}

void ShardedClient::look_after(Shard& shard, Time now) {
  ShardClient& client = *shard.client;
  if (shard.lives) {
    client.poll();
    if (client.silent() >= options_.client.silence)
      leave(shard, "it does not answer");
    else if (shard.catches_up && client.in_flight() == 0)
      shard.catches_up = false;
    return;
  }
  try {
    if (shard.ask_at && now >= *shard.ask_at) {
      shard.ask_at.reset();
      client.ask_stats();
    }
    if (!client.answered())
      return;
  } catch (const std::runtime_error& e) { // another server may be using its endpoint
    shard.why = e.what();
    shard.ask_at = now + kAskAgain;
    return;
  }
  shard.lives = true;
  shard.catches_up = client.in_flight() > 0;
  shard.number = new_number();
  ++counters_.rejoined;
  options_.log("replay shard " + shard.address.name + " at " + shard.address.endpoint
               + " is back; it gets " + std::to_string(client.in_flight())
               + " insertions that it has not accepted");
}

void ShardedClient::leave(Shard& shard, const std::string& why) {
  shard.lives = false;
  shard.catches_up = true;
  shard.known = false;
  shard.asks_stats = false;
  shard.why = why;
  drop_plan();
  ++counters_.left;
  shard.client->ask_stats(); // repeated with every ping until it answers
  options_.log("replay shard " + shard.address.name + " at " + shard.address.endpoint
               + " is left out: " + why + "; it rejoins when it answers");
}

/// Waits for the shard's answer. Returns false at the deadline, or if the shard has been left out.
bool ShardedClient::await(Shard& shard, Deadline deadline) {
  for (;;) {
    if (shard.client->answered())
      return true;
    if (shard.client->silent() >= options_.client.silence) {
      leave(shard, "it does not answer");
      return false;
    }
    const Time now = Clock::now();
    if (now >= deadline)
      return false;
    shard.client->wait(std::min(deadline, now + options_.client.ping_interval));
  }
}

void ShardedClient::rest(Deadline deadline) {
  const Deadline until = std::min(deadline, Clock::now() + kRest);
  if (shards_.empty())
    std::this_thread::sleep_until(until);
  else
    shards_[turn_++ % shards_.size()]->client->wait(until);
  poll();
}

bool ShardedClient::any_lives() const {
  return std::any_of(shards_.begin(), shards_.end(),
                     [](const auto& shard) { return shard->lives; });
}

void ShardedClient::fail_without_shards() const {
  std::string text = "no replay shard answers:";
  for (const auto& shard : shards_)
    text += " " + shard->address.name + " at " + shard->address.endpoint + " (" + shard->why + ")";
  throw ShardSilence(shards_.empty() ? "there is no replay shard: add() one"
                                     : text + "; are their processes alive?");
}

ShardedClient::Trajectory& ShardedClient::trajectory_of(const Insertion& insertion) {
  Trajectory& at = remember(trajectories_, insertion.writer_id, kMostWriters, ++used_);
  // A trajectory is identified by its first insertion, so that a repeated call finds the same one.
  const bool another = at.ended || episode_begin(insertion) == Begins::now;
  if (another || at.id == 0) {
    const std::uint64_t first = another ? insertion.sequence : 0;
    at.id = env::mix_bits(insertion.writer_id + env::kSplitMixStep * first) | 1U;
    at.home = 0;
    at.ended = false;
  }
  return at;
}

std::uint64_t ShardedClient::new_number() {
  constexpr std::uint64_t kMostNumber = 0xffff; // the 16 bits above the key in the shard
  do
    last_number_ = last_number_ % kMostNumber + 1;
  while (numbered(last_number_) != nullptr);
  return last_number_;
}

ShardedClient::Shard* ShardedClient::numbered(std::uint64_t number) {
  const auto at = std::find_if(shards_.begin(), shards_.end(),
                               [&](const auto& shard) { return shard->number == number; });
  return at == shards_.end() ? nullptr : at->get();
}

/// Returns the shard for the next insertion of a trajectory; null if no shard can take it.
ShardedClient::Shard* ShardedClient::home_of(const Trajectory& trajectory,
                                             const std::vector<std::uint64_t>& full) {
  const auto takes = [&](const Shard& shard) {
    return shard.lives && !shard.catches_up
           && std::find(full.begin(), full.end(), shard.number) == full.end();
  };
  if (Shard* home = numbered(trajectory.home); home != nullptr && takes(*home))
    return home;
  const auto at =
      replay::home_of(trajectory.id, hashes_, [&](std::size_t i) { return takes(*shards_[i]); });
  return at ? shards_[*at].get() : nullptr;
}

bool ShardedClient::insert(InsertionPtr insertion, Deadline deadline) {
  Trajectory& trajectory = trajectory_of(*insertion);
  std::vector<std::uint64_t> full; // numbers of shards with full windows
  for (;;) {
    const Time now = Clock::now();
    tend(now);
    Shard* const home = home_of(trajectory, full);
    if (home == nullptr && !full.empty()) { // every shard has had its turn
      full.clear();
      continue;
    }
    if (home == nullptr) {
      if (now >= deadline && !any_lives())
        fail_without_shards();
      if (now >= deadline)
        return false;
      rest(deadline);
      continue;
    }
    bool taken = false;
    if (!attempt(*home, [&] {
          taken = home->client->insert(insertion, std::min(deadline, now + options_.patience));
        }))
      continue;
    if (taken) {
      counters_.spilled += trajectory.home != 0 && trajectory.home != home->number ? 1 : 0;
      trajectory.home = home->number;
      trajectory.ended = episode_begin(*insertion) == Begins::next;
      return true;
    }
    if (Clock::now() >= deadline)
      return false;
    full.push_back(home->number);
  }
}

bool ShardedClient::flush(Deadline deadline) {
  for (;;) {
    poll();
    const auto waits = std::find_if(shards_.begin(), shards_.end(), [](const auto& shard) {
      return shard->client->in_flight() > 0;
    });
    if (waits == shards_.end())
      return true;
    const Time now = Clock::now();
    if (now >= deadline)
      return false;
    (*waits)->client->wait(std::min(deadline, now + kRest));
  }
}

std::vector<ShardState> ShardedClient::shards() const {
  std::vector<ShardState> made;
  for (const auto& shard : shards_)
    made.push_back({shard->address, shard->lives, shard->client->in_flight(), shard->stats});
  return made;
}

} // namespace troupe::replay
