#include "tests/learner/transparent/trainer_run.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <random>

using namespace troupe;
using namespace troupe::learner::transparent;

namespace {

void write_number(std::ofstream& out, std::uint32_t value) { // most significant byte first
  for (int shift = 24; shift >= 0; shift -= 8)
    out.put(static_cast<char>(value >> shift));
}

/// Pictures in the file format and sizes that LibTorch's MNIST expects: a bar whose position is the
/// label, and noise.
void write_digits(const std::filesystem::path& folder, const std::string& name,
                  std::uint32_t count) {
  constexpr std::uint32_t kSide = 28;
  std::ofstream images(folder / (name + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (name + "-labels-idx1-ubyte"), std::ios::binary);
  for (const std::uint32_t value : {std::uint32_t{2051}, count, kSide, kSide})
    write_number(images, value);
  for (const std::uint32_t value : {std::uint32_t{2049}, count})
    write_number(labels, value);
  std::mt19937 random(3);
  std::array<char, kSide * kSide> picture{};
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto label = random() % 10;
    picture.fill(0);
    for (std::size_t row = 4; row < 24; ++row)
      picture[row * kSide + 4 + 2 * label] = static_cast<char>(200);
    for (int speck = 0; speck < 20; ++speck)
      picture[random() % picture.size()] = static_cast<char>(120);
    images.write(picture.data(), picture.size());
    labels.put(static_cast<char>(label));
  }
}

} // namespace

TEST_CASE("The MNIST program on two and four ranks follows its curve on one rank") {
  const TemporaryFolder folder;
  write_digits(folder.path(), "train", 60'000);
  write_digits(folder.path(), "t10k", 10'000);
  const auto words = [&](const char* batch) {
    return std::vector<std::string>{
        style("mnist_style"),          folder.path().string(), batch, "30", "0.05",
        (folder / "model.pt").string()};
  };
  const auto alone = run_alone(words("64"), folder);
  REQUIRE(alone.exit_code == 0);
  const auto curve = numbers_of(alone.output, "step ");
  REQUIRE(curve.size() == 30);
  CHECK(curve.back() < 0.7 * curve.front());
  const auto tested = lines_of(alone.output, "test: ").at(0);
  for (const int ranks : {2, 4}) {
    const auto run = run_ranks(ranks, words(ranks == 2 ? "32" : "16"), folder, {"--rank0-writes"});
    CAPTURE(run.outcome.output);
    REQUIRE(run.outcome.exit_code == 0);
    std::vector<double> mean(curve.size());
    for (const std::string& rank : run.ranks) {
      const auto mine = numbers_of(rank, "step ");
      REQUIRE(mine.size() == curve.size());
      for (std::size_t i = 0; i < mine.size(); ++i)
        mean[i] += mine[i] / ranks;
      // Every rank tests all samples, with the same parameters.
      CHECK(lines_of(rank, "test: ") == lines_of(run.ranks[0], "test: "));
      CHECK(lines_of(rank, "test: ").at(0).ends_with(" of 10000"));
    }
    for (std::size_t i = 0; i < curve.size(); ++i)
      CHECK(std::abs(mean[i] - curve[i]) < 1e-3);
    const double right = std::stod(tested.substr(6));
    CHECK(std::abs(std::stod(lines_of(run.ranks[0], "test: ").at(0).substr(6)) - right) <= 20);
  }
}
