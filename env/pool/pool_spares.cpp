// How episodes begin: in place, or in a spare that was prepared ahead of time.
#include <cstring>
#include <stdexcept>
#include <utility>

#include "env/pool/pool_engine.hpp"
#include "env/split_mix.hpp"

namespace troupe::env {

namespace {

constexpr std::chrono::seconds kSpareDeadline{60};

} // namespace

std::uint64_t split_episode_seed(std::uint64_t seed, std::uint64_t environment,
                                 std::uint64_t episode) {
  std::uint64_t state = mix_bits(seed + kSplitMixStep);
  state = mix_bits(state ^ mix_bits(environment + 1));
  return mix_bits(state ^ mix_bits(episode + kSplitMixStep));
}

std::string words_of_present_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    const std::string said = error.what();
    return said.empty() ? "an exception without a message" : said;
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

void PoolEngine::begin(std::size_t worker, std::uint32_t environment) {
  std::atomic<SpareState>& state = spare_states_[environment];
  SpareState seen = state.load(std::memory_order_acquire);
  for (bool settled = false; !settled;) {
    switch (seen) {
    case SpareState::wanted:
    case SpareState::overdue:
      if (const bool overdue = seen == SpareState::overdue; state.compare_exchange_weak(
              seen, SpareState::none, std::memory_order_acq_rel, std::memory_order_acquire)) {
        tally(environment).wanted.fetch_sub(1, std::memory_order_relaxed);
        tally(environment).overdue.fetch_sub(overdue ? 1 : 0, std::memory_order_relaxed);
        begin_in_place(environment);
        settled = true;
      }
      break;
    case SpareState::preparing: // by another thread, which will finish the step
      if (state.compare_exchange_weak(seen, SpareState::awaited, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        return;
      break;
    case SpareState::ready:
      begin_from_spare(environment);
      settled = true;
      break;
    case SpareState::none:
    case SpareState::awaited:
      begin_in_place(environment);
      settled = true;
      break;
    }
  }
  publish(worker, environment);
}

std::uint64_t PoolEngine::seed_of(std::uint32_t environment, std::uint64_t episode) const {
  const PoolSlot& slot = slots_[environment];
  if (!slot.seed)
    return episode_seed_(static_cast<int>(environment), episode);
  const std::uint64_t since = episode - slot.seeded_at;
  return since == 0 ? *slot.seed : split_episode_seed(*slot.seed, 0, since);
}

void PoolEngine::begin_in_place(std::uint32_t environment) {
  PoolSlot& slot = slots_[environment];
  slot.steps = 0;
  slot.episode_return = 0;
  ++slot.episode;
  try {
    const std::uint64_t seed = seed_of(environment, slot.episode - 1);
    slot.result = slot.environment->reset(seed, observation(environment));
    slot.phase = PoolPhase::playing;
    slot.status = RowStatus::ok;
  } catch (...) {
    fail(environment, words_of_present_exception());
  }
  want_spare(environment);
}

void PoolEngine::begin_from_spare(std::uint32_t environment) {
  PoolSlot& slot = slots_[environment];
  ++slot.episode;
  slot.steps = 0;
  slot.episode_return = 0;
  if (slot.spare_error.empty()) {
    std::swap(slot.environment, slot.spare);
    std::memcpy(destinations_[environment], slot.spare_observation.data(), observation_bytes_);
    slot.result = slot.spare_result;
    slot.phase = PoolPhase::playing;
    slot.status = RowStatus::ok;
  } else {
    fail(environment, slot.spare_error);
  }
  spare_states_[environment].store(SpareState::none, std::memory_order_relaxed);
  want_spare(environment);
}

void PoolEngine::want_spare(std::uint32_t environment) {
  if (!spares_ || slots_[environment].phase == PoolPhase::out_of_service)
    return;
  tally(environment).wanted.fetch_add(1, std::memory_order_relaxed);
  spare_states_[environment].store(SpareState::wanted, std::memory_order_release);
}

void PoolEngine::mind_overdue(std::uint32_t environment) {
  if (!spares_ || slots_[environment].steps < due_[environment])
    return;
  SpareState seen = SpareState::wanted;
  if (spare_states_[environment].load(std::memory_order_relaxed) == seen
      && spare_states_[environment].compare_exchange_strong(seen, SpareState::overdue,
                                                            std::memory_order_acq_rel))
    tally(environment).overdue.fetch_add(1, std::memory_order_relaxed);
}

bool PoolEngine::may_prepare(std::size_t worker) const {
  return spares_ && (bound_ || worker > 0 || !caller_plays_ || workers_.size() == 1);
}

bool PoolEngine::prepare_one(std::size_t worker, bool overdue_only) {
  Worker& me = *workers_[worker];
  const Worker& counts = *workers_[bound_ ? worker : 0];
  if ((overdue_only ? counts.overdue : counts.wanted).load(std::memory_order_relaxed) <= 0
      || preparing_.load(std::memory_order_relaxed) >= preparers_)
    return false;
  const std::size_t first = bound_ ? me.first : 0;
  const std::size_t count = (bound_ ? me.last : slots_.size()) - first;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t place = (me.cursor + k) % count;
    const SpareState state = spare_states_[first + place].load(std::memory_order_acquire);
    if ((state == SpareState::overdue || (state == SpareState::wanted && !overdue_only))
        && prepare(worker, static_cast<std::uint32_t>(first + place), state)) {
      me.cursor = place + 1;
      return true;
    }
  }
  return false;
}

bool PoolEngine::prepare(std::size_t worker, std::uint32_t environment, SpareState from) {
  std::atomic<SpareState>& state = spare_states_[environment];
  const bool overdue = from == SpareState::overdue;
  if (preparing_.fetch_add(1, std::memory_order_relaxed) >= preparers_
      || !state.compare_exchange_strong(from, SpareState::preparing, std::memory_order_acq_rel)) {
    preparing_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  tally(environment).wanted.fetch_sub(1, std::memory_order_relaxed);
  tally(environment).overdue.fetch_sub(overdue ? 1 : 0, std::memory_order_relaxed);
  PoolSlot& slot = slots_[environment];
  slot.spare_error.clear();
  try {
    const std::uint64_t seed = seed_of(environment, slot.episode);
    slot.spare_result = slot.spare->reset(seed, slot.spare_observation);
  } catch (...) {
    slot.spare_error = words_of_present_exception();
  }
  SpareState seen = SpareState::preparing;
  const bool first =
      state.compare_exchange_strong(seen, SpareState::ready, std::memory_order_acq_rel);
  preparing_.fetch_sub(1, std::memory_order_relaxed);
  if (!first) { // awaited: this thread finishes the environment's step
    begin_from_spare(environment);
    publish(worker, environment);
  }
  return true;
}

void PoolEngine::hold_spares() {
  const auto deadline = Clock::now() + kSpareDeadline;
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    for (SpareState seen = spare_states_[i].load(std::memory_order_acquire);
         seen != SpareState::none;) {
      const bool counted = seen == SpareState::wanted || seen == SpareState::overdue;
      const bool overdue = seen == SpareState::overdue;
      if (seen == SpareState::preparing) {
        if (Clock::now() >= deadline)
          throw std::runtime_error("the reset of environment " + std::to_string(i)
                                   + " of the pool takes longer than 60 s; its state cannot be "
                                     "loaded meanwhile");
        std::this_thread::yield();
        seen = spare_states_[i].load(std::memory_order_acquire);
      } else if (spare_states_[i].compare_exchange_weak(seen, SpareState::none,
                                                        std::memory_order_acq_rel,
                                                        std::memory_order_acquire)) {
        tally(i).wanted.fetch_sub(counted ? 1 : 0, std::memory_order_relaxed);
        tally(i).overdue.fetch_sub(overdue ? 1 : 0, std::memory_order_relaxed);
        break;
      }
    }
}

void PoolEngine::release_spares() {
  for (std::uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].phase != PoolPhase::unstarted)
      want_spare(i);
}

} // namespace troupe::env
