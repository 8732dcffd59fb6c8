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

/// A key of a configuration block and the member of a configuration that takes its value. The
/// member's initial value is the key's default; the block's schema then states none.
struct Member {
  const char* key; // within its block: "shards"
  std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
               std::filesystem::path*, std::vector<std::string>*, std::vector<std::int64_t>*,
               std::vector<double>*>
      value;
};
using Members = std::vector<Member>;

/// Copies the values that the block has to their members.
void assign(const google::protobuf::Message& block, const Members& members);

/// The values of the members by key, as they are written in a file; lists: "256,256".
std::map<std::string, std::string> texts(const Members& members);

/// A number as people write it: 1000000000, 0.0003, 1e+13 from 1e15 on.
std::string number_text(double value);

} // namespace troupe::learner
