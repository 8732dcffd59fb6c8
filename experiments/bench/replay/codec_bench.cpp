#include <random>
#include <string>
#include <vector>

#include "env/make/make.hpp"
#include "experiments/bench/replay/replay_setup.hpp"
#include "replay/chunks/column_codec.hpp"

namespace troupe::experiments {

namespace {

constexpr std::size_t kChunkRows = 16;
constexpr std::size_t kChunks = 8;
constexpr std::size_t kWindow = 6; // 3 stacked frames, and the same 3 steps later
constexpr int kActionRepeat = 1;

/// Time steps of one task under random actions, stored by column.
struct Recording {
  struct Column {
    replay::ColumnShape shape;
    std::vector<std::byte> rows;
  };
  Column frame, action, reward, discount;
};

template <class T>
void append(Recording::Column& column, const T* values, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values);
  column.rows.insert(column.rows.end(), bytes, bytes + count * sizeof(T));
}

Recording record(const BenchOptions& options, const std::string& task) {
  const auto environment = env::make_environment({.task = task,
                                                  .pixels = env::PixelOptions{},
                                                  .action_repeat = kActionRepeat,
                                                  .models = options.models});
  const env::ActionSpec& actions = environment->spec().action;
  Recording recording;
  recording.frame.shape = replay::column_shape(environment->spec().observations.front());
  recording.action.shape = {.element_bytes = 4, .row_bytes = actions.size() * 4};
  recording.reward.shape = recording.discount.shape = {.element_bytes = 4, .row_bytes = 4};
  std::vector<std::byte> frame(recording.frame.shape.row_bytes);
  std::vector<double> action(actions.size());
  std::vector<float> taken(actions.size());
  std::mt19937_64 random(1);
  env::TimeStep step = environment->reset(1, frame);
  for (std::size_t row = 0; row < kChunks * kChunkRows; ++row) {
    const auto reward = static_cast<float>(step.reward);
    const auto discount = static_cast<float>(step.discount);
    append(recording.frame, frame.data(), frame.size());
    append(recording.action, taken.data(), taken.size());
    append(recording.reward, &reward, 1);
    append(recording.discount, &discount, 1);
    for (std::size_t i = 0; i < action.size(); ++i) {
      action[i] = std::uniform_real_distribution(actions.minimum[i], actions.maximum[i])(random);
      taken[i] = static_cast<float>(action[i]);
    }
    step = environment->step(action, frame);
  }
  return recording;
}

class CodecBench {
public:
  CodecBench(const BenchOptions& options, const Report& report, std::string task)
      : options_(options),
        report_(report),
        task_(std::move(task)),
        recording_(record(options, task_)) {}

  void run(const std::string& name, replay::Compression wanted) {
    const auto give = [&](const char* metric, const char* unit, const std::vector<double>& values) {
      report_values(
          report_, "replay_disk", metric, unit, values,
          {{"task", task_}, {"compression", name}, {"rows per chunk", std::to_string(kChunkRows)}});
    };
    const std::vector<replay::EncodedColumn> frames = encode(recording_.frame, wanted);
    std::size_t bytes = kChunks * kChunkRows; // one byte of flags per row
    for (const auto& column : frames)
      bytes += column.bytes();
    for (const Recording::Column* small :
         {&recording_.action, &recording_.reward, &recording_.discount})
      for (const auto& column : encode(*small, replay::Compression::automatic))
        bytes += column.bytes();
    give("memory per transition with action, reward and discount", "bytes",
         {static_cast<double>(bytes) / (kChunks * kChunkRows)});
    give("encoding", "frames/s", measure_rates(options_, [&] {
           encode(recording_.frame, wanted);
           return static_cast<double>(kChunks * kChunkRows);
         }));
    std::mt19937 random(2);
    const std::size_t row_bytes = recording_.frame.shape.row_bytes;
    std::vector<std::byte> out(64 * kWindow * row_bytes); // exceeds the caches
    std::size_t turn = 0;
    give("decoding random windows of 6 frames", "GB/s", measure_rates(options_, [&] {
           decode(frames, random() % (kChunks * kChunkRows - kWindow + 1),
                  out.data() + turn++ % 64 * kWindow * row_bytes);
           return static_cast<double>(kWindow * row_bytes) * 1e-9;
         }));
  }

private:
  std::vector<replay::EncodedColumn> encode(const Recording::Column& column,
                                            replay::Compression wanted) {
    std::vector<replay::EncodedColumn> chunks;
    const std::size_t row_bytes = column.shape.row_bytes;
    const replay::ColumnPlan plan = replay::plan_column(
        column.shape, {column.rows.data(), row_bytes, kChunkRows}, wanted, scratch_);
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk)
      chunks.push_back(replay::EncodedColumn::encode(
          column.shape,
          {column.rows.data() + chunk * kChunkRows * row_bytes, row_bytes, kChunkRows}, plan,
          scratch_));
    return chunks;
  }

  void decode(const std::vector<replay::EncodedColumn>& chunks, std::size_t first, std::byte* out) {
    const std::size_t row_bytes = recording_.frame.shape.row_bytes;
    const std::size_t row = first % kChunkRows;
    const std::size_t here = std::min(kWindow, kChunkRows - row);
    chunks[first / kChunkRows].decode(row, here, out, row_bytes, scratch_);
    if (here < kWindow)
      chunks[first / kChunkRows + 1].decode(0, kWindow - here, out + here * row_bytes, row_bytes,
                                            scratch_);
  }

  const BenchOptions& options_;
  const Report& report_;
  std::string task_;
  Recording recording_;
  replay::CodecScratch scratch_;
};

} // namespace

void replay_setup::bench_codec(const BenchOptions& options, const Report& report) {
  std::vector<std::string> tasks = options.tasks;
  if (tasks.empty())
    tasks = {"cartpole_balance", "reacher_easy", "finger_spin",      "ball_in_cup_catch",
             "hopper_hop",       "cheetah_run",  "swimmer_swimmer6", "quadruped_walk",
             "walker_walk",      "humanoid_walk"};
  else if (tasks == std::vector<std::string>{"all"})
    tasks = env::task_names();
  for (const std::string& task : tasks) {
    CodecBench bench(options, report, task);
    bench.run("none", replay::Compression::none);
    bench.run("packed", replay::Compression::packed);
    bench.run("lz4", replay::Compression::lz4);
    bench.run("zstd", replay::Compression::zstd);
  }
}

} // namespace troupe::experiments
