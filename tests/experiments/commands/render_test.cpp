// `troupe render` and `troupe check likeness`, used as from a shell.
#include "tests/experiments/commands/program.hpp"

#include <doctest/doctest.h>
#include <png.h>

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "experiments/report/video.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe;
using namespace troupe::experiments;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct Png {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;
};

Png read_png(const fs::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&image, path.c_str()) != 0);
  image.format = PNG_FORMAT_RGB;
  Png out{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  out.rgb.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, out.rgb.data(), 0, nullptr) != 0);
  return out;
}

Outcome render(std::vector<std::string> words, const fs::path& folder) {
  words.insert(words.begin(), "render");
  return run_troupe(words, folder);
}

int distinct(const Png& picture) {
  std::vector<std::uint32_t> colours;
  for (std::size_t i = 0; i < picture.rgb.size(); i += 3)
    colours.push_back(picture.rgb[i] + 256U * picture.rgb[i + 1] + 65536U * picture.rgb[i + 2]);
  std::sort(colours.begin(), colours.end());
  return static_cast<int>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

} // namespace

TEST_CASE("Rendering a state is reproducible and depends on seed, step, camera, effects and size") {
  const TemporaryFolder folder;
  const auto picture = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"walker_walk", "--renderer", "caster", "--out", "a.png"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = render(words, folder.path());
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.output.find("ray caster") != std::string::npos);
    return read_png(folder.path() / "a.png");
  };
  const Png first = picture({"--size", "64"});
  CHECK(first.width == 64);
  CHECK(first.height == 64);
  CHECK(distinct(first) > 50);
  CHECK(picture({"--size", "64"}).rgb == first.rgb);
  CHECK(picture({"--size", "64", "--seed", "2"}).rgb != first.rgb);
  CHECK(picture({"--size", "64", "--step", "40"}).rgb != first.rgb);
  CHECK(picture({"--size", "64", "--camera", "back"}).rgb != first.rgb);
  CHECK(picture({"--size", "64", "--no-effects"}).rgb != first.rgb);
  const Png wide = picture({"--height", "30", "--width", "50"});
  CHECK(wide.width == 50);
  CHECK(wide.height == 30);
  const Png segments = picture({"--size", "64", "--segmentation"});
  CHECK(distinct(segments) > 5);
  CHECK(distinct(segments) < 40);
  for (const Png& grey :
       {picture({"--size", "64", "--depth"}), picture({"--size", "64", "--grey"})})
    for (std::size_t i = 0; i < grey.rgb.size(); i += 3)
      REQUIRE((grey.rgb[i] == grey.rgb[i + 1] && grey.rgb[i] == grey.rgb[i + 2]));
}

TEST_CASE("Both renderers are drawn side by side with their difference, and their similarity is "
          "reported") {
  const TemporaryFolder folder;
  const Outcome outcome =
      render({"cheetah_run", "--renderer", "both", "--size", "60", "--out", "both.png", "--json"},
             folder.path());
  CAPTURE(outcome.output);
  REQUIRE(outcome.exit_code == 0);
  const json told = json::parse(outcome.output);
  CHECK(told["similarity"].get<double>() <= 1);
  CHECK(told["renderers"].size() == 2);
  const Png both = read_png(folder.path() / "both.png");
  CHECK(both.width == 180);
  const int gain = 4;
  for (std::size_t y = 0; y < 60; ++y)
    for (std::size_t i = 0; i < 180; ++i) {
      const std::uint8_t* row = both.rgb.data() + y * 540;
      REQUIRE(row[360 + i] == std::min(255, gain * std::abs(row[i] - row[180 + i])));
    }
}

TEST_CASE(
    "Several environments are drawn as a contact sheet, and an mp4 or gif name records a video") {
  const TemporaryFolder folder;
  const Outcome sheet = render({"cheetah_run", "walker_walk", "reacher_easy", "--renderer",
                                "caster", "--size", "40", "--out", "sheet.png", "--json"},
                               folder.path());
  CAPTURE(sheet.output);
  REQUIRE(sheet.exit_code == 0);
  CHECK(std::count(sheet.output.begin(), sheet.output.end(), '\n') == 3);
  CHECK(read_png(folder.path() / "sheet.png").width >= 80);
  for (const char* name : {"film.mp4", "film.gif"}) {
    const Outcome film = render(
        {"cheetah_run", "--renderer", "caster", "--size", "48", "--steps", "60", "--out", name},
        folder.path());
    CAPTURE(film.output);
    REQUIRE(film.exit_code == 0);
    const VideoInfo info = read_video(folder.path() / name);
    CHECK(info.width == 48);
    CHECK(info.frames == 16); // every fourth of 60 steps of 0.01 s, and the first
  }
}

TEST_CASE("The labels of a contact sheet stay above their own pictures") {
  const TemporaryFolder folder;
  const auto sheet = [&](const std::string& size, std::vector<std::string> tasks) {
    for (const char* word : {"--renderer", "caster", "--out", "sheet.png", "--size"})
      tasks.emplace_back(word);
    tasks.push_back(size);
    const Outcome outcome = render(tasks, folder.path());
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return read_png(folder.path() / "sheet.png");
  };
  const auto lit = [](const Png& picture, int left, int right, int top, int bottom) {
    int count = 0;
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x)
        count += picture.rgb[static_cast<std::size_t>(3 * (y * picture.width + x))] == 255 ? 1 : 0;
    return count;
  };
  const Png wrapped = sheet("60", {"cartpole_balance", "cartpole_balance_sparse"});
  REQUIRE(wrapped.width == 132); // two cells of 60 pixels and a gap of 6
  REQUIRE(wrapped.height == 82); // two lines of 8, the picture and the gap
  for (const int cell : {0, 66}) {
    CHECK(lit(wrapped, cell, cell + 60, 0, 9) > 20);
    CHECK(lit(wrapped, cell, cell + 60, 9, 16) > 20);
    CHECK(lit(wrapped, cell + 61, cell + 66, 0, 82) == 0);
  }
  // Of 20 letters, the longer name fills both lines and ends with two dots of 2x2 pixels.
  CHECK(lit(wrapped, 66 + 49, 66 + 61, 9, 16) == 8);
  CHECK(sheet("120", {"cheetah_run", "walker_walk"}).height
        == 2 * (120 + 8 + 6)); // one line per label, and one column
}

TEST_CASE("Without --camera, pictures follow the animal, also where camera 0 follows a ball") {
  const TemporaryFolder folder;
  const auto picture = [&](std::vector<std::string> words) {
    for (const char* word : {"--renderer", "caster", "--size", "64", "--out", "a.png", "--json"})
      words.emplace_back(word);
    const Outcome outcome = render(words, folder.path());
    CAPTURE(outcome.output);
    REQUIRE(outcome.exit_code == 0);
    return read_png(folder.path() / "a.png").rgb;
  };
  const auto dog = picture({"dog_fetch"});
  CHECK(dog == picture({"dog_fetch", "--camera", "y-axis"}));
  CHECK(dog != picture({"dog_fetch", "--camera", "0"}));
  CHECK(picture({"walker_walk"}) == picture({"walker_walk", "--camera", "0"}));
  CHECK(picture({"reacher_easy"}) == picture({"reacher_easy", "--camera", "0"}));
}

TEST_CASE("An invalid render request is reported in one line") {
  const TemporaryFolder folder;
  struct Mistake {
    std::vector<std::string> words;
    std::string part;
  };
  for (const Mistake& mistake : std::vector<Mistake>{
           {{}, "name an environment"},
           {{"walker_wlak"}, "nearest: 'walker_walk'"},
           {{"walker_walk", "--camera", "front"}, "'front' is not a camera"},
           {{"walker_walk", "--size", "5000"}, "--size"},
           {{"walker_walk", "--width", "64"}, "--height"},
           {{"walker_walk", "--step", "2000"}, "ends at step 1000"},
           {{"walker_walk", "--out", "a.avi"}, ".png, .mp4 or .gif"},
           {{"walker_walk", "cheetah_run", "--out", "a.mp4"}, "a contact sheet is a picture"},
           {{"walker_walk", "--all"}, "--all"},
           {{"walker_walk", "--depth", "--segmentation"}, "--depth"},
           {{"walker_walk", "--renderer", "povray"}, "--renderer"},
       }) {
    const Outcome outcome = render(mistake.words, folder.path());
    CAPTURE(outcome.output);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.last_line.starts_with("troupe: "));
    CHECK(outcome.last_line.find(mistake.part) != std::string::npos);
    CHECK(std::count(outcome.output.begin(), outcome.output.end(), '\n') == 1);
  }
  const Outcome unwritable =
      render({"walker_walk", "--size", "16", "--renderer", "caster", "--out", "no/where.png"},
             folder.path());
  CHECK(unwritable.exit_code == 1);
  CHECK(unwritable.last_line.find("no/where.png") != std::string::npos);
}

TEST_CASE("check likeness prints one JSON line per task and one for all, and its exit code gives "
          "the verdict") {
  const Outcome outcome =
      run_troupe({"check", "likeness", "--task", "cheetah_run", "--states", "3", "--json"});
  CAPTURE(outcome.output);
  std::istringstream lines(outcome.output);
  std::string line;
  REQUIRE(std::getline(lines, line));
  const json task = json::parse(line);
  CHECK(task["task"] == "cheetah_run");
  CHECK(task["pictures"] == 3);
  CHECK(task["worst_similarity"].get<double>() <= task["similarity"].get<double>());
  CHECK(task["segmentation_share"].get<double>() > .9);
  REQUIRE(std::getline(lines, line));
  const bool good =
      task["passed"].get<bool>() && json::parse(line)["mean_similarity"].get<double>() >= .985;
  CHECK(outcome.exit_code == (good ? 0 : 1));
}
