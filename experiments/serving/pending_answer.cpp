#include "experiments/serving/pending_answer.hpp"

#include <nlohmann/json.hpp>

namespace troupe::experiments::serving {

web::Response PendingAnswer::response() const {
  if (as_bytes)
    return {.type = "application/octet-stream",
            .body = std::string(reinterpret_cast<const char*>(actions[0].data()),
                                actions[0].size() * sizeof(float)),
            .headers = {{"X-Troupe-Version", version}}};
  nlohmann::json body{{"version", version}, {"updates", updates}};
  if (many)
    body["actions"] = actions;
  else
    body["action"] = actions[0];
  return {.body = body.dump()};
}

} // namespace troupe::experiments::serving
