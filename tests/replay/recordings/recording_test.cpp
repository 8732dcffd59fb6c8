// Recordings of episodes: what was written is read back, and damaged files are refused.
#include "replay/recordings/recording.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include <doctest/doctest.h>

#include "replay/storage/storage_error.hpp"
#include "replay/writers/n_step_items.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

RecordingSpec states() {
  return {.frame = {"state", env::ElementType::float32, {3}},
          .action_size = 2,
          .action_choices = {0, 4},
          .about = {{"task", "Taxi"}, {"seed", "3"}}};
}

RecordingSpec pixels() {
  return {.frame = {"pixels", env::ElementType::uint8, {3, 40, 40}}, .stack = 3, .action_size = 1};
}

std::vector<std::byte> frame_of(const RecordingSpec& spec, std::mt19937& random) {
  std::vector<std::byte> frame(spec.frame.bytes());
  for (std::byte& byte : frame)
    byte = static_cast<std::byte>(random() % 4);
  return frame;
}

Episode episode_of(const RecordingSpec& spec, int steps, unsigned seed, bool terminated = true) {
  std::mt19937 random(seed);
  Episode episode(spec);
  episode.begin(frame_of(spec, random));
  for (int i = 1; i <= steps; ++i) {
    std::vector<float> action;
    for (int k = 0; k < spec.action_size; ++k)
      action.push_back(static_cast<float>(random() % 4));
    episode.append(action, static_cast<float>(i) / 8, terminated && i == steps ? 0 : 1,
                   frame_of(spec, random));
  }
  return episode;
}

bool same(const Episode& a, const Episode& b) {
  if (a.rows() != b.rows())
    return false;
  for (std::int64_t row = 0; row < a.rows(); ++row)
    for (const TransitionColumn column : {kFrame, kAction, kReward, kDiscount})
      if (!std::ranges::equal(a.column(row, column), b.column(row, column)))
        return false;
  return true;
}

/// Why the recording cannot be used, "" if it can.
std::string damage(const fs::path& folder) {
  return error_of<StorageError>([&] { Recording(folder).verify(); });
}

struct Small {
  Small() {
    RecordingWriter writer(path, states());
    writer.add(episode_of(states(), 4, 1));
    writer.add(episode_of(states(), 2, 2, false));
    writer.commit();
  }
  TemporaryFolder folder;
  fs::path path = folder / "small";
};

TEST_CASE("An episode has the actions that its environment received, within [-1, 1]") {
  const RecordingSpec spec = states();
  std::mt19937 random(1);
  Episode episode(spec);
  episode.begin(frame_of(spec, random));
  for (const float number : {-2.5F, 0.25F, 3.0F})
    episode.append(std::vector{number, 3.0F}, 0, 1, frame_of(spec, random));
  CHECK(episode.action(1) == std::vector{-1.0F, 3.0F}); // the second number is a choice
  CHECK(episode.action(2) == std::vector{0.25F, 3.0F});
  CHECK(episode.action(3) == std::vector{1.0F, 3.0F});
}

TEST_CASE("Episodes of states and of pixels are read back unchanged") {
  for (const RecordingSpec& spec : {states(), pixels()}) {
    CAPTURE(spec.frame.name);
    const TemporaryFolder folder;
    RecordingWriter writer(folder / "made", spec);
    std::vector<Episode> written;
    for (unsigned i = 0; i < 5; ++i) {
      written.push_back(episode_of(spec, 1 + 30 * static_cast<int>(i), i, i % 2 == 0));
      writer.add(written.back());
    }
    CHECK_FALSE(is_recording(folder / "made"));
    writer.commit();
    CHECK(is_recording(folder / "made"));
    const Recording recording(folder / "made");
    CHECK(recording.spec() == spec);
    REQUIRE(recording.episodes().size() == written.size());
    CHECK(recording.steps() == 1 + 31 + 61 + 91 + 121);
    for (std::size_t i = written.size(); i-- > 0;) {
      CHECK(same(recording.read(i), written[i]));
      CHECK(recording.episodes()[i].terminated == (i % 2 == 0));
      CHECK(recording.episodes()[i].total_reward == written[i].total_reward());
    }
    recording.verify();
  }
}

TEST_CASE("The insertions of a transition writer are joined into the original episodes") {
  for (const std::int64_t sequence : {0, 4}) {
    CAPTURE(sequence);
    const TransitionSpec transitions{.frame = states().frame,
                                     .action_size = 2,
                                     .action_choices = {0, 4},
                                     .n_step = sequence == 0 ? 3 : 1,
                                     .sequence_steps = sequence};
    Writer writer = transition_writer(transitions, 7, 5); // chunks of five rows
    const std::vector<Episode> played{episode_of(states(), 9, 1), episode_of(states(), 1, 2),
                                      episode_of(states(), 23, 3), episode_of(states(), 6, 4)};
    EpisodeJoiner joiner(states());
    std::vector<Episode> joined;
    const auto take = [&] {
      if (const auto insertion = writer.take())
        joiner.add(*insertion, [&](const Episode& episode) { joined.push_back(episode); });
    };
    for (const Episode& episode : played) {
      episode.write(writer);
      take();
    }
    writer.abandon(); // the environment failed, so the next rows belong to another episode
    episode_of(states(), 5, 5).write(writer);
    take();
    REQUIRE(joined.size() >= played.size()); // with sequences, the last rows are still missing
    for (std::size_t i = 0; i < played.size(); ++i)
      CHECK(same(joined[i], played[i]));
  }
}

TEST_CASE("An episode that its environment aborted ends with its last step") {
  const TransitionSpec transitions{
      .frame = states().frame, .action_size = 2, .action_choices = {0, 4}};
  Writer writer = transition_writer(transitions, 1);
  const Episode whole = episode_of(states(), 6, 1);
  EpisodeJoiner joiner(states());
  std::vector<Episode> joined;
  for (std::int64_t row = 0; row < 4; ++row) { // three steps of the episode
    std::ranges::copy(whole.frame(row), writer.next(kFrame).begin());
    if (row == 0)
      begin_episode(writer);
    else
      append_step(writer, whole.action(row), whole.reward(row), whole.discount(row), false);
  }
  whole.write(writer);
  joiner.add(*writer.take(), [&](const Episode& episode) { joined.push_back(episode); });
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].steps() == 3);
  CHECK_FALSE(joined[0].terminated());
  CHECK(same(joined[1], whole));
  CHECK(joiner.open().rows() == 0);
}

TEST_CASE(
    "Flipped bits and truncations of a recording are refused, and the error names the recording") {
  const Small small;
  REQUIRE(damage(small.path) == "");
  for (const auto& entry : fs::directory_iterator(small.path)) {
    const std::string bytes = read_text(entry.path());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string other = bytes;
      other[i] = static_cast<char>(other[i] ^ (1 << (i % 8)));
      std::ofstream(entry.path(), std::ios::binary) << other;
      REQUIRE(has(damage(small.path), small.path.string()));
      std::ofstream(entry.path(), std::ios::binary) << bytes.substr(0, i);
      REQUIRE(has(damage(small.path), small.path.string()));
    }
    std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
  CHECK(damage(small.path) == "");
}

TEST_CASE("Folders that are not recordings are refused, and so are steps that do not fit") {
  const Small small;
  CHECK_THROWS_WITH_AS(Recording(small.folder / "none"), doctest::Contains("is not a recording"),
                       std::invalid_argument);
  CheckpointWriter other(small.folder / "table", {});
  other.commit({});
  CHECK_FALSE(is_recording(small.folder / "table"));
  CHECK_THROWS_WITH_AS(Recording(small.folder / "table"), doctest::Contains("troupe record"),
                       StorageError);
  TransitionSpec transitions{.frame = states().frame, .action_size = 2, .action_choices = {0, 4}};
  check_fits(states(), transitions, "r");
  transitions.stack = 3; // single frames are stored
  check_fits(states(), transitions, "r");
  transitions.action_choices = {0, 5};
  CHECK_THROWS_WITH_AS(check_fits(states(), transitions, "the_folder"),
                       doctest::Contains("the_folder"), std::invalid_argument);
  transitions.action_choices = {};
  transitions.frame.shape = {4};
  CHECK_THROWS_WITH_AS(check_fits(states(), transitions, "r"), doctest::Contains("float32 [4]"),
                       std::invalid_argument);
}

TEST_CASE("Log-probabilities of actions in a writer's rows are recorded and read back") {
  RecordingSpec spec = states();
  spec.log_probability = true;
  const Episode plain = episode_of(states(), 7, 1);
  const TransitionSpec transitions{
      .frame = states().frame,
      .action_size = 2,
      .action_choices = {0, 4},
      .sequence_steps = 1,
      .extras = {{"version", env::ElementType::int64, {}},
                 {kPlayedLogProbability, env::ElementType::float32, {}}}};
  Writer writer = transition_writer(transitions, 7, 5); // chunks of five rows
  EpisodeJoiner joiner(spec);
  Episode joined(spec);
  for (std::int64_t row = 0; row < plain.rows(); ++row) {
    std::ranges::copy(plain.frame(row), writer.next(kFrame).begin());
    if (row == 0) {
      begin_episode(writer);
      continue;
    }
    clear_extras(writer);
    const float logarithm = -0.25F * static_cast<float>(row);
    std::memcpy(writer.next(writer.layout().place(kExtras) + 1).data(), &logarithm, sizeof(float));
    append_step(writer, plain.action(row), plain.reward(row), plain.discount(row), row == 7);
    joiner.add(*writer.take(), [&](const Episode& episode) { joined = episode; });
  }
  const TemporaryFolder folder;
  RecordingWriter out(folder / "made", spec);
  out.add(joined);
  out.commit();
  const Recording recording(folder / "made");
  CHECK(recording.spec() == spec);
  recording.verify();
  const Episode read = recording.read(0);
  CHECK(same(read, plain));
  REQUIRE(read.has_log_probability());
  for (std::int64_t row = 0; row < read.rows(); ++row)
    CHECK(read.log_probability(row) == -0.25F * static_cast<float>(row));
  Writer again = transition_writer(transitions_of(states()), 1); // to learn from it
  read.write(again);
  EpisodeJoiner learnt(states());
  learnt.add(*again.take(), [&](const Episode& episode) { CHECK(same(episode, plain)); });

  Writer without = transition_writer(transitions_of(states()), 1);
  plain.write(without);
  EpisodeJoiner lacking(spec);
  CHECK_THROWS_WITH_AS(lacking.add(*without.take(), [](const Episode&) {}),
                       doctest::Contains(kPlayedLogProbability), std::invalid_argument);
}

TEST_CASE("A recording's version states whether it has log-probabilities, and unknown versions are "
          "refused") {
  for (const bool with : {false, true}) {
    CAPTURE(with);
    const TemporaryFolder folder;
    RecordingSpec spec = states();
    spec.log_probability = with;
    RecordingWriter(folder / "made", spec).commit();
    const CheckpointReader reader(folder / "made");
    std::vector<std::byte> header(reader.header().begin(), reader.header().end());
    REQUIRE(parse_recording_header(header, "it").first == spec);
    constexpr std::size_t kVersionAt = 9; // after the magic and the tag of field 1
    CHECK(header[kVersionAt] == std::byte{with ? std::uint8_t{2} : std::uint8_t{1}});
    header[kVersionAt] = std::byte{3};
    CHECK_THROWS_WITH_AS(parse_recording_header(header, "it"),
                         doctest::Contains("version 3; this program reads 1 and 2"), StorageError);
    header[kVersionAt] = std::byte{with ? std::uint8_t{1} : std::uint8_t{2}};
    CHECK_THROWS_WITH_AS(parse_recording_header(header, "it"), doctest::Contains("contradicts"),
                         StorageError);
  }
}

TEST_CASE("Steps that no agent could learn from are not recorded") {
  Episode episode(states());
  const std::vector<std::byte> frame(12);
  const std::vector<float> action{0, 1};
  episode.begin(frame);
  CHECK_THROWS_WITH_AS(episode.append(action, NAN, 1, frame), doctest::Contains("step 1"),
                       std::invalid_argument);
  CHECK_THROWS_AS(episode.append(std::vector<float>{INFINITY, 0}, 0, 1, frame),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(episode.append(std::vector<float>{1}, 0, 1, frame),
                       doctest::Contains("1 numbers"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(episode.append(action, 0, 1, frame, {}, -1.0F),
                       doctest::Contains("its spec has none"), std::invalid_argument);
  CHECK(episode.steps() == 0);
  RecordingSpec spec = states();
  spec.log_probability = true;
  Episode probable(spec);
  probable.begin(frame);
  CHECK_THROWS_WITH_AS(probable.append(action, 0, 1, frame), doctest::Contains("its spec has one"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(probable.append(action, 0, 1, frame, {}, -INFINITY),
                       doctest::Contains("log-probability"), std::invalid_argument);
  const TemporaryFolder folder;
  RecordingWriter writer(folder / "made", states());
  CHECK_THROWS_AS(writer.add(episode), std::invalid_argument);
}

TEST_CASE("A path that is not UTF-8 is recorded with its other bytes escaped") {
  const TemporaryFolder folder;
  RecordingSpec spec = states();
  spec.about = {{"checkpoint", "runs/caf\xe9/7"}, {"task", "Käfer"}};
  RecordingWriter(folder / "made", spec).commit();
  const Recording recording(folder / "made");
  CHECK(recording.spec().about.at("checkpoint") == "runs/caf\\xe9/7");
  CHECK(recording.spec().about.at("task") == "Käfer");
}

TEST_CASE("The longest episode is recorded and read back, and one more step is refused") {
  const RecordingSpec spec{.frame = {"state", env::ElementType::float32, {1}}, .action_size = 1};
  const std::vector<std::byte> frame(sizeof(float));
  const std::vector<float> action{0};
  Episode episode(spec);
  episode.begin(frame);
  while (episode.steps() < Episode::kMostSteps)
    episode.append(action, 0, 1, frame);
  CHECK_THROWS_WITH_AS(episode.append(action, 0, 1, frame),
                       doctest::Contains("more than 1048575 steps; give its environment a time"),
                       std::invalid_argument);
  const TemporaryFolder folder;
  RecordingWriter writer(folder / "made", spec);
  writer.add(episode);
  writer.commit();
  CHECK(Recording(folder / "made").read(0).steps() == Episode::kMostSteps);
}

} // namespace
} // namespace troupe::replay
