#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "env/wire/context.hpp"
#include "replay/service/shard_client.hpp"

namespace troupe::replay::python {

/// Numbers of a received message for Python's buffer protocol: read-only, in place, and alive while
/// a view of them exists.
struct View {
  std::shared_ptr<const ColumnPart> owner;
  const void* begin = nullptr;
  char type = 'B'; // as in Python's module struct
  std::vector<pybind11::ssize_t> shape;
  std::vector<pybind11::ssize_t> strides; // bytes

  pybind11::buffer_info buffer() const;
};

/// One message of a sample.
struct Part {
  std::shared_ptr<const ColumnPart> part;
  Signature signature;

  View column(std::size_t place) const;         // [rows of all items, column's shape]
  View first(std::size_t place) const;          // uint64 [items + 1]
  View of_items(const std::string& what) const; // [items]; "key", "priority", …
};

char struct_code(env::ElementType type);

struct ClientSettings {
  std::string endpoint;
  std::string table;
  double deadline = 0; // seconds, for the server's first answer
  std::string secret_key;
  std::string server_key;
  bool shared_memory = true;
  std::size_t window = 64;
  std::size_t part_bytes = 0;
};

/// A ShardClient for any number of Python threads, which take turns. While one waits, others run;
/// twice a second it checks for interrupts.
class Client {
public:
  explicit Client(const ClientSettings& settings);

  const Signature& signature() const { return signature_; }

  /// False: neither sent nor kept.
  bool insert(const InsertionPtr& insertion, const std::string& table, double deadline);
  bool flush(double deadline);
  std::size_t in_flight();
  std::optional<std::vector<Part>> sample(std::int64_t count, double deadline, double patience);
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         double deadline);
  void set_limiter(const RateLimiterConfig& limiter, double deadline);
  ShardInfo info(double deadline);
  void close();

private:
  /// Calls `wait(client, until)` until it returns true or the deadline has passed.
  template <typename Wait>
  bool patiently(double deadline, Wait wait);

  std::mutex mutex_;
  std::string endpoint_;
  std::optional<env::wire::Context> context_;
  std::optional<ShardClient> client_;
  Signature signature_;
};

/// "ValueError" for the caller's errors; others unchanged.
void add_client(pybind11::module_& module);
void add_writer(pybind11::module_& module);

} // namespace troupe::replay::python
