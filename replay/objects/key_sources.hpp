#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "replay/objects/http_exchange.hpp"
#include "replay/objects/store_keys.hpp"
#include "replay/objects/store_options.hpp"

namespace troupe::replay {

/// A service that lends temporary keys to a pod, a container or an instance.
struct KeySource {
  enum class Kind {
    web_identity, // AssumeRoleWithWebIdentity of the Security Token Service
    container,    // the agent of ECS or EKS
    instance,     // metadata of EC2, version 2
  };
  Kind kind = Kind::instance;
  std::string url = {};  // of the service; for a container, the complete URL
  std::string role = {}; // for a web identity: ARN of the role
  /// For a web identity: name of the session in the logs of the owner of the store.
  std::string session = {};
  /// File with the token of a web identity or of a container's header; read at each fetch.
  std::string token_file = {};
  std::string token = {}; // token of a container's header, if token_file is empty
  std::string ca_bundle = {};
};

/// Chooses the source from the variables of AWS, in this order: AWS_WEB_IDENTITY_TOKEN_FILE with
/// AWS_ROLE_ARN, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, and the metadata service
/// unless AWS_EC2_METADATA_DISABLED is true. Throws std::invalid_argument naming the variable, the
/// rule and the remedy; the message never contains a token.
std::optional<KeySource> key_source(const VariableLookup& variable, const std::string& region);

/// Fetches keys from the service. If it does not answer, retries a few times, for about 20 seconds
/// at most. Throws StoreError naming the service, the reason and the remedy; the message contains
/// no secret.
StoreKeys fetch_keys(const KeySource& source, HttpClient& client, const std::stop_token& stop);

} // namespace troupe::replay
