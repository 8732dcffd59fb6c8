#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "replay/batch/batch.hpp"
#include "replay/batch/gather.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::replay {

/// A batch and the memory behind it.
struct Batch {
  Batch(const TransitionSpec& spec, std::int64_t rows_)
      : rows(static_cast<std::size_t>(rows_)),
        observation(rows * spec.observation().bytes()),
        next_observation(observation.size()),
        action(rows * static_cast<std::size_t>(spec.action_size)),
        reward(rows),
        discount(rows),
        running_return(spec.running_return ? rows : 0),
        key(rows) {
    for (const env::ArraySpec& vector : spec.vectors) {
      vectors.emplace_back(rows * vector.elements());
      next_vectors.emplace_back(rows * vector.elements());
    }
  }
  BatchView view() {
    BatchView made{observation, next_observation, action, reward, discount, key};
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      made.vectors.push_back(std::as_writable_bytes(std::span(vectors[i])));
      made.next_vectors.push_back(std::as_writable_bytes(std::span(next_vectors[i])));
    }
    made.running_return = running_return;
    return made;
  }
  bool operator==(const Batch&) const = default;

  std::size_t rows;
  std::vector<std::byte> observation, next_observation;
  std::vector<float> action, reward, discount, running_return;
  std::vector<std::uint64_t> key;
  std::vector<std::vector<float>> vectors, next_vectors;
};

inline TransitionSpec pixel_spec(int stack, int n_step) {
  return {.frame = {"pixels", env::ElementType::uint8, {3, 4, 5}},
          .stack = stack,
          .action_size = 3,
          .n_step = n_step,
          .discount = 0.97};
}

inline TransitionSpec state_spec(int n_step, std::int64_t size = 24) {
  return {.frame = {"state", env::ElementType::float32, {size}},
          .stack = 1,
          .action_size = 6,
          .n_step = n_step,
          .discount = 0.99};
}

/// Raw time steps of random episodes, kept in full so that every transition can be recomputed.
struct RawStep {
  std::vector<std::byte> frame;
  std::vector<float> action;
  float reward = 0;
  float discount = 1;
};
using RawEpisode = std::vector<RawStep>;

/// Writes random episodes to a writer and remembers all steps. A frame begins with its episode and
/// step, so that a sampled transition can be identified; the rest is noise.
class Player {
public:
  Player(const TransitionSpec& spec, std::uint64_t seed, std::int64_t first_episode = 0)
      : spec_(spec), random_(seed), episode_(first_episode) {}

  /// Writes one time step: the first one of a new episode, or the next one of the open episode.
  void step(Writer& writer) {
    RawStep raw;
    raw.frame.resize(spec_.frame.bytes());
    if (open_ == 0) {
      open_ = 1 + static_cast<int>(random_() % 12);
      episodes.emplace_back();
      ++episode_;
      raw.frame = frame(0);
      fill(writer, raw.frame, 0);
      begin_episode(writer);
      episodes.back().push_back(raw);
      return;
    }
    --open_;
    const auto t = static_cast<std::uint32_t>(episodes.back().size());
    for (int i = 0; i < spec_.action_size; ++i)
      raw.action.push_back(uniform());
    raw.reward = uniform();
    const bool last = open_ == 0;
    raw.discount =
        last && random_() % 2 == 0 ? 0.0F : 1.0F - 0.1F * static_cast<float>(random_() % 2);
    raw.frame = frame(t);
    fill(writer, raw.frame, t);
    append_step(writer, raw.action, raw.reward, raw.discount, last);
    episodes.back().push_back(raw);
  }

  /// Checks row `row` of a batch against the raw episodes, according to the definition in spec.hpp.
  /// Returns the transition's (episode, step).
  std::pair<std::int64_t, std::size_t> check_row(const Batch& batch, std::size_t row) const {
    const std::size_t bytes = spec_.frame.bytes();
    const std::size_t observation = bytes * static_cast<std::size_t>(spec_.stack);
    const std::byte* newest = &batch.observation[(row + 1) * observation - bytes];
    std::uint32_t place[2];
    std::memcpy(place, newest, sizeof place);
    const std::size_t index = place[0] - (static_cast<std::size_t>(episode_) + 1 - episodes.size());
    REQUIRE_LT(index, episodes.size());
    const RawEpisode& episode = episodes[index];
    const std::size_t start = place[1];
    REQUIRE_LT(start + 1, episode.size());
    const std::size_t m =
        std::min<std::size_t>(static_cast<std::size_t>(spec_.n_step), episode.size() - 1 - start);
    double reward = 0;
    double product = 1; // discount^k prod d_j
    for (std::size_t k = 0; k < m; ++k) {
      reward += product * static_cast<double>(episode[start + 1 + k].reward);
      product *= spec_.discount * static_cast<double>(episode[start + 1 + k].discount);
    }
    CHECK_EQ(batch.reward[row], doctest::Approx(reward).epsilon(1e-6));
    CHECK_EQ(batch.discount[row], doctest::Approx(product).epsilon(1e-6));
    if (spec_.running_return) {
      double running = 0;
      for (std::size_t k = 1; k <= start + 1; ++k)
        running = spec_.discount * running + static_cast<double>(episode[k].reward);
      CHECK_EQ(batch.running_return[row], doctest::Approx(running).epsilon(1e-5));
    }
    CHECK(std::equal(episode[start + 1].action.begin(), episode[start + 1].action.end(),
                     batch.action.begin()
                         + static_cast<std::ptrdiff_t>(row * episode[start + 1].action.size())));
    CHECK(same_stack(episode, start, &batch.observation[row * observation]));
    CHECK(same_stack(episode, start + m, &batch.next_observation[row * observation]));
    CHECK(same_vectors(batch.vectors, row, place[0], start));
    CHECK(same_vectors(batch.next_vectors, row, place[0], start + m));
    return {place[0], start};
  }

  /// Vector `i` that belongs to the frame of this episode and step.
  std::vector<float> vector_of(std::size_t i, std::uint32_t episode, std::uint32_t t) const {
    std::vector<float> numbers(spec_.vectors[i].elements());
    for (std::size_t k = 0; k < numbers.size(); ++k)
      numbers[k] = static_cast<float>(episode * 100 + t) + static_cast<float>(10 * i + k) / 64;
    return numbers;
  }

  std::vector<RawEpisode> episodes;

private:
  bool same_vectors(const std::vector<std::vector<float>>& got, std::size_t row,
                    std::uint32_t episode, std::size_t t) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto wanted = vector_of(i, episode, static_cast<std::uint32_t>(t));
      if (!std::equal(wanted.begin(), wanted.end(), &got[i][row * wanted.size()]))
        return false;
    }
    return true;
  }
  bool same_stack(const RawEpisode& episode, std::size_t newest, const std::byte* got) const {
    for (int j = 0; j < spec_.stack; ++j, got += spec_.frame.bytes()) {
      const std::ptrdiff_t t = static_cast<std::ptrdiff_t>(newest) - (spec_.stack - 1) + j;
      const auto& frame = episode[static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, t))].frame;
      if (std::memcmp(got, frame.data(), frame.size()) != 0)
        return false;
    }
    return true;
  }
  std::vector<std::byte> frame(std::uint32_t t) {
    std::vector<std::byte> made(spec_.frame.bytes());
    for (std::byte& b : made)
      b = static_cast<std::byte>(random_());
    const std::uint32_t place[2] = {static_cast<std::uint32_t>(episode_), t};
    std::memcpy(made.data(), place, sizeof place);
    return made;
  }
  void fill(Writer& writer, const std::vector<std::byte>& frame, std::uint32_t t) const {
    std::copy(frame.begin(), frame.end(), writer.next(kFrame).begin());
    for (std::size_t i = 0; i < spec_.vectors.size(); ++i) {
      const auto numbers = vector_of(i, static_cast<std::uint32_t>(episode_), t);
      std::memcpy(writer.next(kVectors + i).data(), numbers.data(), numbers.size() * sizeof(float));
    }
  }
  float uniform() { return static_cast<float>(random_() >> 40U) * 0x1p-24F - 0.5F; }

  TransitionSpec spec_;
  std::mt19937_64 random_;
  std::int64_t episode_;
  int open_ = 0; // steps left in the open episode
};

/// A player's insertions with at least `least` items each.
struct Source {
  explicit Source(const TransitionSpec& spec, std::uint64_t id = 1)
      : writer(transition_writer(spec, id, 12)), player(spec, 5) {}
  InsertionPtr next(std::int64_t least) {
    while (writer.pending_items() < least)
      player.step(writer);
    return writer.take();
  }
  Writer writer;
  Player player;
};

} // namespace troupe::replay
