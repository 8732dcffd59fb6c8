#include "experiments/dashboard/run_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

#include "env/text/number_in.hpp"

namespace troupe::experiments::dashboard {
namespace {

constexpr std::size_t kMostListed = 200;
constexpr std::uint64_t kMostAtOnce = std::uint64_t{4} << 20; // maximum size of a part in bytes
constexpr std::uint64_t kMostWhole = std::uint64_t{64} << 20;

struct Range {
  std::uint64_t first = 0, last = 0; // bytes
};

/// What a header Range asks for.
struct AskedRange {
  bool valid = false;        // other texts are ignored (RFC 9110, 14.2)
  std::optional<Range> part; // nothing: outside the file
};

/// Parses "bytes=0-99", "bytes=100-" or "bytes=-50". Several ranges are not supported.
AskedRange parse_range(std::string_view text, std::uint64_t size) {
  const std::string_view unit = "bytes=";
  if (!text.starts_with(unit)) {
    return {};
  }
  text.remove_prefix(unit.size());
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) {
    return {};
  }
  const bool to_end = dash + 1 == text.size();
  auto first = env::number_in<std::uint64_t>(text.substr(0, dash));
  auto last = env::number_in<std::uint64_t>(text.substr(dash + 1));
  if (dash == 0 && last) { // the last bytes
    first = size - std::min(*last, size);
    last = std::nullopt;
  } else if (!first || (!to_end && (!last || *last < *first))) {
    return {};
  }
  if (*first >= size) {
    return {.valid = true, .part = {}};
  }
  return {.valid = true, .part = Range{*first, std::min(last.value_or(size - 1), size - 1)}};
}

} // namespace

std::vector<RunFile> run_files(const std::filesystem::path& run, const std::string& kind) {
  const std::string extension = kind == "videos" ? ".mp4" : kind == "timelines" ? ".json" : ".png";
  std::vector<RunFile> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / kind, error)) {
    struct stat about {};
    if (entry.path().extension() == extension && ::stat(entry.path().c_str(), &about) == 0
        && S_ISREG(about.st_mode)) {
      found.push_back({kind + "/" + entry.path().filename().string(),
                       static_cast<double>(about.st_mtim.tv_sec)});
    }
  }
  std::sort(found.begin(), found.end(), [](const RunFile& a, const RunFile& b) {
    return a.time != b.time ? a.time > b.time : a.path > b.path;
  });
  found.resize(std::min(found.size(), kMostListed));
  return found;
}

web::Response file_reply(const std::filesystem::path& run, const web::Request& request) {
  const std::string path = request.parameter("path");
  const std::string kind = path.substr(0, path.find('/'));
  const auto listed = kind == "videos" || kind == "pictures" || kind == "timelines"
                          ? run_files(run, kind)
                          : std::vector<RunFile>();
  const bool is_listed = std::any_of(listed.begin(), listed.end(),
                                     [&](const RunFile& file) { return file.path == path; });
  std::error_code error;
  const std::uint64_t size = is_listed ? std::filesystem::file_size(run / path, error) : 0;
  std::ifstream in(run / path, std::ios::binary);
  if (!is_listed || error || !in) {
    return web::error_response(404, path + ": the run has no such video or picture");
  }
  web::Response response{.type = kind == "videos"      ? "video/mp4"
                                 : kind == "timelines" ? "application/json"
                                                       : "image/png",
                         .headers = {{"Accept-Ranges", "bytes"}}};
  const auto [valid, range] = parse_range(request.header("range"), size);
  if (valid && !range) {
    response.status = 416;
    response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
    return response;
  }
  if (!range && size > kMostWhole) {
    return web::error_response(
        413, path + ": is larger than 64 MiB; request parts with the header Range");
  }
  Range sent = range.value_or(Range{.first = 0, .last = std::max<std::uint64_t>(1, size) - 1});
  if (range) {
    sent.last = std::min(sent.last, sent.first + kMostAtOnce - 1);
    response.status = 206;
    response.headers.emplace_back("Content-Range", "bytes " + std::to_string(sent.first) + "-"
                                                       + std::to_string(sent.last) + "/"
                                                       + std::to_string(size));
  }
  response.body.resize(size == 0 ? 0 : sent.last - sent.first + 1);
  in.seekg(static_cast<std::streamoff>(sent.first));
  in.read(response.body.data(), static_cast<std::streamsize>(response.body.size()));
  response.body.resize(static_cast<std::size_t>(in.gcount()));
  return response;
}

} // namespace troupe::experiments::dashboard
