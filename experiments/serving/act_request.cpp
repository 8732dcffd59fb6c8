#include "experiments/serving/act_request.hpp"
#include "env/text/json_depth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

namespace troupe::experiments::serving {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(what);
}

std::string name_in(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end())
    return {};
  if (!found->is_string() || found->get_ref<const std::string&>().size() > kLongestLabel)
    refuse(std::string("\"") + key + "\" must be a string of at most "
           + std::to_string(kLongestLabel) + " bytes");
  return *found;
}

bool flag_in(const Json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end())
    return false;
  if (!found->is_boolean())
    refuse(std::string("\"") + key + "\" must be true or false");
  return *found;
}

bool flag_in(const web::Request& request, const char* key) {
  const std::string flag = request.parameter(key);
  if (flag.size() > 1 || flag > "1")
    refuse(std::string(key) + " is \"" + flag.substr(0, kLongestLabel) + "\" but must be 0 or 1");
  return flag == "1";
}

ActRequest bytes_request(const web::Request& request) {
  ActRequest made{.session = request.parameter("session"),
                  .version = request.parameter("version"),
                  .first = flag_in(request, "first"),
                  .last = flag_in(request, "last"),
                  .as_bytes = true,
                  .observations = {},
                  .bytes = request.body};
  if (made.session.size() > kLongestLabel || made.version.size() > kLongestLabel)
    refuse("session and version must be strings of at most " + std::to_string(kLongestLabel)
           + " bytes");
  return made;
}

/// Fills `out` with the numbers of an array in order, regardless of nesting. Returns their count.
class NumberReader {
public:
  NumberReader(const env::ArraySpec& array, std::span<std::byte> out) : array_(array), out_(out) {}

  std::size_t read(const Json& value) {
    if (value.is_array()) {
      for (const Json& inner : value)
        read(inner);
    } else {
      add(value);
    }
    return count_;
  }

private:
  void add(const Json& value) {
    if (!value.is_number())
      refuse("\"" + array_.name + "\" must contain numbers, or be base64 of its bytes");
    const std::size_t bytes = env::element_bytes(array_.type);
    if ((count_ + 1) * bytes <= out_.size())
      write(value, out_.data() + count_ * bytes);
    ++count_;
  }

  void write(const Json& value, std::byte* place) const {
    const double number = value;
    const auto check = [&](bool fits, const char* rule) {
      if (!fits)
        refuse("\"" + array_.name + "\", number " + std::to_string(count_) + ": is " + value.dump()
               + " but must be " + rule);
    };
    switch (array_.type) {
    case env::ElementType::uint8: {
      check(value.is_number_integer() && number >= 0 && number <= 255,
            "a whole number from 0 to 255");
      const auto byte = static_cast<std::uint8_t>(number);
      std::memcpy(place, &byte, sizeof byte);
      break;
    }
    case env::ElementType::int64: {
      check(value.is_number_integer(), "a whole number");
      const auto whole = value.get<std::int64_t>();
      std::memcpy(place, &whole, sizeof whole);
      break;
    }
    case env::ElementType::float64:
      check(std::isfinite(number), "finite");
      std::memcpy(place, &number, sizeof number);
      break;
    case env::ElementType::float32: {
      const auto single = static_cast<float>(number);
      check(std::isfinite(single), "finite as a float32");
      std::memcpy(place, &single, sizeof single);
      break;
    }
    }
  }

  const env::ArraySpec& array_;
  std::span<std::byte> out_;
  std::size_t count_ = 0;
};

/// Returns nothing if the text is not base64.
std::optional<std::string> from_base64(const std::string& text) {
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes(text.size() / 4 * 3, '\0');
  // OpenSSL ignores blanks around the text, and takes "=" anywhere for a zero.
  if (text.size() % 4 != 0 || text.find('=') < text.size() - padding
      || EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                         reinterpret_cast<const unsigned char*>(text.data()),
                         static_cast<int>(text.size()))
             != static_cast<int>(bytes.size()))
    return std::nullopt;
  return bytes.substr(0, bytes.size() - padding);
}

/// The place of an array in an observation, and how many numbers of it a request may contain.
struct Place {
  const env::ArraySpec& array; // the array of one frame
  std::size_t offset = 0;
  std::size_t frames = 1; // or a single frame
};

/// Unless the whole history was read, moves the only frame to the end of the array's place. Returns
/// the number of frames.
int end_of_history(const Place& place, std::size_t numbers, std::span<std::byte> observation) {
  const std::size_t one = place.array.elements();
  const std::size_t all = one * place.frames;
  if (numbers != one && numbers != all)
    refuse("\"" + place.array.name + "\" has " + std::to_string(numbers) + " numbers but must have "
           + std::to_string(one)
           + (place.frames > 1 ? ", or " + std::to_string(all) + " with its history, oldest first"
                               : ""));
  if (numbers == all)
    return static_cast<int>(place.frames);
  std::byte* const begin = observation.data() + place.offset;
  std::memmove(begin + place.array.bytes() * (place.frames - 1), begin, place.array.bytes());
  return 1;
}

int read_array(const Json& value, const Place& place, std::span<std::byte> observation) {
  const std::span<std::byte> out =
      observation.subspan(place.offset, place.array.bytes() * place.frames);
  if (!value.is_string())
    return end_of_history(place, NumberReader(place.array, out).read(value), observation);
  const auto bytes = from_base64(value.get_ref<const std::string&>());
  const std::size_t size = env::element_bytes(place.array.type);
  if (!bytes || bytes->size() % size != 0)
    refuse("\"" + place.array.name + "\" must contain numbers, or be base64 of its bytes");
  std::memcpy(out.data(), bytes->data(), std::min(bytes->size(), out.size()));
  return end_of_history(place, bytes->size() / size, observation);
}

std::vector<Place> places_of(const ServedPolicy& policy) {
  std::vector<Place> places;
  const auto& arrays = policy.contract().observations;
  for (std::size_t a = 0; a < arrays.size(); ++a)
    places.push_back({.array = arrays[a].spec,
                      .offset = policy.spec().observation_offset(a),
                      .frames = a == 0 ? static_cast<std::size_t>(policy.contract().history) : 1});
  return places;
}

/// Checks that the arrays contain only finite numbers, as the JSON reader does for numbers in JSON.
void check_finite(std::span<const Place> places, std::span<const std::byte> observation) {
  for (const Place& place : places)
    for (std::size_t i = 0;
         place.array.type == env::ElementType::float32 && i < place.array.elements() * place.frames;
         ++i) {
      float number = 0;
      std::memcpy(&number, observation.data() + place.offset + i * sizeof number, sizeof number);
      if (!std::isfinite(number))
        refuse("\"" + place.array.name + "\", number " + std::to_string(i)
               + ": is not finite but must be");
    }
}

int read_bytes(const std::string& bytes, const std::vector<Place>& places,
               std::span<std::byte> observation) {
  std::size_t others = 0; // total size of the arrays without a history
  for (std::size_t a = 1; a < places.size(); ++a)
    others += places[a].array.bytes();
  const std::size_t one = places[0].array.bytes();
  const std::size_t all = one * places[0].frames;
  if (bytes.size() != others + one && bytes.size() != others + all)
    refuse("the body has " + std::to_string(bytes.size()) + " bytes but must have "
           + std::to_string(others + one)
           + (all > one ? ", or " + std::to_string(others + all) + " with the history" : "")
           + ": the arrays of /v1/contract one after the other");
  const std::size_t first = bytes.size() - others;
  std::memcpy(observation.data() + places[0].offset, bytes.data(), first);
  std::size_t at = first;
  for (std::size_t a = 1; a < places.size(); at += places[a++].array.bytes())
    std::memcpy(observation.data() + places[a].offset, bytes.data() + at, places[a].array.bytes());
  return end_of_history(places[0], first / env::element_bytes(places[0].array.type), observation);
}

} // namespace

Json parse_body(const std::string& text) {
  constexpr int kDeepest = 8;
  if (env::is_deeper_than(text, kDeepest))
    refuse("the body is nested more than " + std::to_string(kDeepest) + " deep");
  return Json::parse(text, nullptr, false);
}

ActRequest parse_act_request(const web::Request& request) {
  if (request.header("content-type").starts_with("application/octet-stream"))
    return bytes_request(request);
  const Json body = parse_body(request.body);
  if (!body.is_object())
    refuse("the body must be a JSON object, as {\"observation\": {\"state\": [0.1, 0.2]}}");
  ActRequest made{.session = name_in(body, "session"),
                  .version = name_in(body, "version"),
                  .first = flag_in(body, "first"),
                  .last = flag_in(body, "last"),
                  .observations = {},
                  .bytes = {}};
  const bool one = body.contains("observation");
  made.many = body.contains("observations");
  if (one == made.many)
    refuse("the body must have either \"observation\" or \"observations\"");
  if (one) {
    made.observations.push_back(body.at("observation"));
    return made;
  }
  const Json& all = body.at("observations");
  if (!all.is_array() || all.empty() || all.size() > kMostObservations)
    refuse("\"observations\" must be a list of 1 to " + std::to_string(kMostObservations));
  if (!made.session.empty())
    refuse("a \"session\" has one \"observation\" at a time, not \"observations\"");
  made.observations.assign(all.begin(), all.end());
  return made;
}

std::vector<std::byte> read_observation(const ActRequest& request, std::size_t i,
                                        const ServedPolicy& policy, int& frames) {
  std::vector<std::byte> observation(policy.spec().observation_bytes());
  const std::vector<Place> places = places_of(policy);
  frames = 1;
  if (request.as_bytes) {
    frames = read_bytes(request.bytes, places, observation);
    check_finite(places, observation);
    return observation;
  }
  const Json& given = request.observations[i];
  if (given.is_array() && places.size() == 1) {
    frames = read_array(given, places[0], observation);
    return observation;
  }
  std::string names;
  for (const Place& place : places)
    names += (names.empty() ? "\"" : ", \"") + place.array.name + "\"";
  if (!given.is_object() || given.size() != places.size())
    refuse("an observation must be an object with " + names + ", and nothing else");
  for (std::size_t a = 0; a < places.size(); ++a) {
    const auto found = given.find(places[a].array.name);
    if (found == given.end())
      refuse("an observation must have \"" + places[a].array.name + "\"; all are " + names);
    const int read = read_array(*found, places[a], observation);
    frames = a == 0 ? read : frames;
    if (found->is_string())
      check_finite({&places[a], &places[a] + 1}, observation);
  }
  return observation;
}

} // namespace troupe::experiments::serving
