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

constexpr std::size_t kLargestPart = std::size_t{512} << 20; // bytes, kept in memory

/// How to reach an object store, and limits for its use.
struct StoreOptions {
  std::string endpoint; // scheme://host[:port]
  std::string region = "us-east-1";
  StoreKeys keys = {};
  /// Used instead of `keys`; shared by all copies of the options.
  std::shared_ptr<TemporaryKeys> temporary = {};
  std::string ca_bundle = {}; // file of certificates; empty: those of the system
  std::size_t part_bytes = std::size_t{16} << 20; // larger files are sent in parts
  int page_keys = 1000;                           // keys per page of a listing
  int attempts = 5;                               // attempts per request
  /// Pause after the first attempt; doubles with each further one.
  std::chrono::milliseconds first_pause{250};
  std::chrono::seconds connect_deadline{10};
  std::chrono::seconds request_deadline{60}; // plus the time that the bytes take at slowest_rate
  std::size_t slowest_rate = 64 << 10;       // bytes per second
};

/// Returns the value of an environment variable; empty if it is not set.
using VariableLookup = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_variable(const char* name);

/// Reads the options from the variables that the tools of AWS use: AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3
/// or AWS_ENDPOINT_URL, AWS_CA_BUNDLE. If these have no keys, takes them from the profile
/// AWS_PROFILE ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). If that has none
/// either, fetches keys from key_source() at once. Throws std::invalid_argument naming the variable
/// or file, the rule and the remedy, and StoreError if the keys cannot be fetched; messages never
/// contain a secret.
StoreOptions store_options(const VariableLookup& variable = process_variable);

/// Throws std::invalid_argument as store_options() does.
void check(const StoreOptions& options);

/// Throws std::invalid_argument unless `endpoint` is scheme://host[:port], where http:// is allowed
/// only for this host and for `others`. `name` is the name of the variable.
void check_endpoint(const std::string& name, const std::string& endpoint,
                    std::initializer_list<const char*> others = {});

} // namespace troupe::replay
