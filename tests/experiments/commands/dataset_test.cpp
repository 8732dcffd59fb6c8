// `troupe dataset`, used as from a shell.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/experiments/commands/program.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

namespace fs = std::filesystem;

const std::string kScenes = " --classes cartpole_balance,reacher_easy,walker_walk --steps 5 ";

Outcome troupe_program(const std::string& arguments) {
  std::istringstream words(arguments);
  return run_troupe({std::istream_iterator<std::string>(words), {}});
}

std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_text(entry.path());
  return files;
}

nlohmann::json info_of(const std::string& arguments) {
  const Outcome outcome = troupe_program("dataset info " + arguments + " --json");
  REQUIRE(outcome.exit_code == 0);
  return nlohmann::json::parse(outcome.output);
}

} // namespace

TEST_CASE("Rendered scenes do not depend on the number of threads, and splits share no picture") {
  const TemporaryFolder folder;
  const auto render = [&](const char* name, const std::string& more) {
    const Outcome outcome = troupe_program("dataset render " + (folder / name).string() + kScenes
                                           + "--rows 20 --size 24 " + more);
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return files_of(folder / name);
  };
  const auto one = render("one", "");
  CHECK(one.size() == 60);
  CHECK(one.contains("train/walker_walk/000019.jpg"));
  CHECK(render("two", "--threads 3") == one);
  const auto both = render("one", "--split validation");
  CHECK(both.size() == 120);
  std::set<std::string> different;
  for (const auto& [name, bytes] : both)
    different.insert(bytes);
  CHECK(different.size() == 120);
  CHECK(render("other", "--seed 2") != one);
  CHECK(info_of((folder / "one").string()).at("rows") == 60);
  const auto info = info_of((folder / "one").string() + " --split validation");
  CHECK(info.at("names") == nlohmann::json({"cartpole_balance", "reacher_easy", "walker_walk"}));
  CHECK(troupe_program("dataset check " + (folder / "one").string()).output
        == "60 of 60 rows are good\n");
}

TEST_CASE("Every layout holds the rendered scenes, and its format is detected") {
  const TemporaryFolder folder;
  for (const std::string layout : {"tar", "cifar10", "cifar100", "idx", "csv"}) {
    const auto out = (folder / layout).string();
    const Outcome outcome = troupe_program(
        "dataset render " + out + kScenes + "--rows 4 --size 32 --shard-rows 5 --layout " + layout);
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    const auto info = info_of(out);
    CHECK(info.at("format") == layout);
    CHECK(info.at("rows") == 12);
    CHECK(info.at("classes") == (layout == "cifar10" ? 10 : layout == "cifar100" ? 100 : 3));
    CHECK(info.at("names").size() == (layout == "idx" ? 0 : 3));
    CHECK(troupe_program("dataset check " + out + " --threads 2").exit_code == 0);
  }
  CHECK(fs::exists(folder / "tar" / "train" / "000002.tar"));
  // Grey levels stored as bytes (after a header of 16 bytes) and as text are the same.
  const auto bytes = read_text(folder / "idx" / "train-images-idx3-ubyte").substr(16);
  std::istringstream lines(read_text(folder / "csv" / "train" / "train.csv"));
  std::string field;
  std::getline(lines, field);
  CHECK(field.starts_with("label,pixel0,"));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % 1024 == 0) {
      std::getline(lines, field, ',');
      CHECK(field == std::vector{"cartpole_balance", "reacher_easy", "walker_walk"}[i / 1024 % 3]);
    }
    std::getline(lines, field, i % 1024 == 1023 ? '\n' : ',');
    REQUIRE(std::round(std::stod(field) * 255) == static_cast<unsigned char>(bytes[i]));
  }
  // CIFAR has one or two labels, and then the planes of red, green and blue.
  const auto ten = read_text(folder / "cifar10" / "data_batch_1.bin");
  const auto hundred = read_text(folder / "cifar100" / "train.bin");
  REQUIRE(ten.size() == 12 * 3073);
  REQUIRE(hundred.size() == 12 * 3074);
  REQUIRE(bytes.size() == 12 * 1024);
  for (std::size_t row = 0; row < 12; ++row) {
    const auto planes = ten.substr(row * 3073 + 1, 3072);
    CHECK(ten[row * 3073] == static_cast<char>(row % 3));
    CHECK(hundred[row * 3074 + 1] == static_cast<char>(row % 3));
    CHECK(hundred.substr(row * 3074 + 2, 3072) == planes);
    for (std::size_t i = 0; i < 1024; ++i) {
      const auto level = [&](std::size_t plane) {
        return static_cast<unsigned char>(planes[plane * 1024 + i]);
      };
      REQUIRE((299 * level(0) + 587 * level(1) + 114 * level(2) + 500) / 1000
              == static_cast<unsigned char>(bytes[row * 1024 + i]));
    }
  }
  const auto out = (folder / "files").string();
  REQUIRE(troupe_program("dataset render " + out + kScenes + "--rows 4 --size 32").exit_code == 0);
  std::string shards;
  for (const auto& [name, content] : files_of(folder / "tar"))
    shards += content;
  const auto pictures = files_of(folder / "files");
  CHECK(pictures.size() == 12);
  for (const auto& [name, picture] : pictures) {
    CAPTURE(name);
    CHECK(shards.find(picture) != std::string::npos);
  }
}

TEST_CASE("A bad picture is listed, and invalid arguments are explained") {
  const TemporaryFolder folder;
  const auto out = (folder / "a").string();
  REQUIRE(troupe_program("dataset render " + out + kScenes + "--rows 2 --size 16").exit_code == 0);
  std::ofstream(folder / "a" / "train" / "reacher_easy" / "000001.jpg") << "no picture";
  const Outcome checked = troupe_program("dataset check " + out);
  CHECK(checked.exit_code == 1);
  CHECK(checked.output.find("reacher_easy/000001.jpg (row 3)") != std::string::npos);
  CHECK(checked.output.find("5 of 6 rows are good") != std::string::npos);
  const auto refused = [&](const std::string& arguments, const char* words) {
    const Outcome outcome = troupe_program("dataset " + arguments);
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.output.find(words) != std::string::npos);
  };
  refused("render " + out + kScenes + "--rows 2", "already exists; remove it");
  refused("render " + out + "/b --classes cartpole_balanc", "nearest: cartpole_balance");
  refused("render " + out + "/b --layout cifar10", "at most 10 classes");
  refused("info " + out + "/nothing", "there is no such file or folder");
  CHECK_FALSE(fs::exists(folder / "a" / "b"));
}
