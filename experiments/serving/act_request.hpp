#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experiments/serving/served_policy.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::serving {

constexpr std::size_t kMostObservations = 1'024; // of a request
constexpr std::size_t kLongestLabel = 128;       // bytes, of a session or a version

/// A request for actions, as far as it can be read without knowing the policy.
///
/// JSON: {"observation": {NAME: numbers, …}} or {"observations": [{…}, …]}, and optionally
/// "session", "first" and "version". Arrays may be nested; a text is base64 of the array's bytes,
/// little-endian. Bytes (application/octet-stream): the arrays of one observation one after the
/// other, with session, first and version in the query; the answer is float32 numbers.
struct ActRequest {
  std::string session;
  std::string version;
  bool first = false;
  bool many = false; // answered by a list
  bool as_bytes = false;
  std::vector<nlohmann::json> observations;
  std::string bytes;

  std::size_t count() const { return as_bytes ? 1 : observations.size(); }
};

/// Throws std::invalid_argument naming the key and the rule.
ActRequest parse_act_request(const web::Request& request);

/// Observation number `i` as the policy's spec lays it out. Of the first array it has the whole
/// history, or one frame, which is put at the end; `frames` says how many. Throws
/// std::invalid_argument naming the array, and what it must be.
std::vector<std::byte> read_observation(const ActRequest& request, std::size_t i,
                                        const ServedPolicy& policy, int& frames);

} // namespace troupe::experiments::serving
