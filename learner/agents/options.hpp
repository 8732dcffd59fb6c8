#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace troupe::learner {

/// Connects a key of a configuration block with the member that receives its value. The member's
/// initial value is the default; the block's schema must not state another one.
struct Member {
  const char* key; // name within its block: "shards"
  std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
               std::filesystem::path*, std::vector<std::string>*, std::vector<std::int64_t>*,
               std::vector<double>*>
      value;
};
using Members = std::vector<Member>;

/// Copies the values that are set in the block to the members.
void assign(const google::protobuf::Message& block, const Members& members);

/// Returns the value of each key as written in a file; lists as "256,256".
std::map<std::string, std::string> texts(const Members& members);

/// Formats a number for people: 1000000000, 0.0003; with an exponent from 1e+15 on.
std::string number_text(double value);

} // namespace troupe::learner
