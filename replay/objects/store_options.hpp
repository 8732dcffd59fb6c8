#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "replay/objects/store_keys.hpp"

namespace troupe::replay {

constexpr std::size_t kLargestPart = std::size_t{512} << 20; // bytes, in memory

/// How to reach an object store, and its bounds.
struct StoreOptions {
  std::string endpoint; // scheme://host[:port]
  std::string region = "us-east-1";
  StoreKeys keys = {};
  std::shared_ptr<TemporaryKeys> temporary = {};  // in place of keys; of all copies of the options
  std::string ca_bundle = {};                     // file of certificates; empty: the system's
  std::size_t part_bytes = std::size_t{16} << 20; // files above it are sent in parts
  int page_keys = 1000;                           // keys of one page of a listing
  int attempts = 5;                               // of one request
  std::chrono::milliseconds first_pause{250};     // doubles with each attempt
  std::chrono::seconds connect_deadline{10};
  std::chrono::seconds request_deadline{60}; // beside the time that the bytes need at slowest_rate
  std::size_t slowest_rate = 64 << 10;       // bytes a second
};

/// The value of an environment variable; empty: not set.
using VariableLookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_variable(const char* name);

/// From the variables that the tools of AWS read: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
/// AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL,
/// AWS_CA_BUNDLE. Without the keys: the profile AWS_PROFILE ("default") of
/// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); without this, key_source(), which is asked at
/// once. Throws std::invalid_argument naming the variable or file, the rule and the remedy, and
/// StoreError when the keys of a role cannot be had; never with a secret.
StoreOptions store_options(const VariableLookup& variable = process_variable);

/// Throws std::invalid_argument as store_options() does.
void check(const StoreOptions& options);

/// Of scheme://host[:port]; http:// only to this host and to `others`. `name` is the variable's.
/// Throws std::invalid_argument.
void check_endpoint(const std::string& name, const std::string& endpoint,
                    std::initializer_list<const char*> others = {});

} // namespace troupe::replay
