#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/serving/served_policy.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::serving {

constexpr std::size_t kMostObservations = 1'024; // maximum in one request
constexpr std::size_t kLongestLabel = 128;       // bytes in a session's or version's name

/// A request for actions, as far as it can be read without knowing the policy.
///
/// JSON: {"observation": {NAME: numbers, …}} or {"observations": [{…}, …]}, and optionally
/// "session", "first", "last" and "version". Arrays may be nested. A text is the base64 form of the
/// array's bytes, little-endian. Bytes (application/octet-stream): the arrays of one observation
/// one after another, with session, first, last and version in the query; the answer is float32
/// numbers.
struct ActRequest {
  std::string session;
  std::string version;
  bool first = false;
  bool last = false; // the session ends with the answer
  bool many = false; // whether the answer is a list
  bool as_bytes = false;
  std::vector<nlohmann::json> observations;
  std::string bytes;

  std::size_t count() const { return as_bytes ? 1 : observations.size(); }
};

/// Parses the JSON of a request's body; the value is discarded if the text is not JSON. Throws
/// std::invalid_argument if it is nested more than 8 deep: copies of deeper values would overflow
/// the stack.
nlohmann::json parse_body(const std::string& text);

/// Throws std::invalid_argument with the key and the rule.
ActRequest parse_act_request(const web::Request& request);

/// Returns observation number `i` in the layout of the policy's spec. The request contains the
/// whole history of the first array, or a single frame, which is stored as the newest one; `frames`
/// is set to the number of frames. Throws std::invalid_argument that names the array and its rule.
std::vector<std::byte> read_observation(const ActRequest& request, std::size_t i,
                                        const ServedPolicy& policy, int& frames);

} // namespace troupe::experiments::serving
