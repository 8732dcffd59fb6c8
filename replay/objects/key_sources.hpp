#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "replay/objects/http_exchange.hpp"
#include "replay/objects/store_keys.hpp"
#include "replay/objects/store_options.hpp"

namespace troupe::replay {

/// A service that lends keys for a while to a pod, a container or an instance.
struct KeySource {
  enum class Kind {
    web_identity, // AssumeRoleWithWebIdentity of the Security Token Service
    container,    // the agent of ECS or EKS
    instance,     // metadata of EC2, version 2
  };
  Kind kind = Kind::instance;
  std::string url = {};        // of the service; of a container the whole address
  std::string role = {};       // of a web identity: its ARN
  std::string session = {};    // of a web identity: a name for the logs of the store's owner
  std::string token_file = {}; // of a web identity, or of a container's header; read at each fetch
  std::string token = {};      // of a container's header, when there is no file
  std::string ca_bundle = {};
};

/// From the variables of AWS, in this order: AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN,
/// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, and the metadata service unless
/// AWS_EC2_METADATA_DISABLED is true. Throws std::invalid_argument naming the variable, the rule
/// and the remedy; never with a token.
std::optional<KeySource> key_source(const VariableLookup& variable, const std::string& region);

/// Asks the service, a few times if it is away, for about 20 seconds at most. Throws StoreError
/// naming the service, the reason and the remedy, and no secret.
StoreKeys fetch_keys(const KeySource& source, HttpClient& client, const std::stop_token& stop);

} // namespace troupe::replay
