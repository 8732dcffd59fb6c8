#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/wire/context.hpp"
#include "experiments/python/fork_guard.hpp"
#include "experiments/python/replay/insertion_sink.hpp"
#include "experiments/python/replay/part.hpp"
#include "replay/service/shard_client.hpp"

namespace troupe::python {

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

/// A ShardClient for any number of Python threads, which take turns. While one waits, others can
/// run. sample(), insert() and flush() check for interrupts twice a second, the other calls at
/// their end. A process that was forked after the client was made is refused.
class ReplayClient final : public InsertionSink {
public:
  explicit ReplayClient(const ClientSettings& settings);
  ~ReplayClient() override;

  const std::shared_ptr<const replay::Signature>& signature() const override { return signature_; }

  void check_table(const std::string& table) override;
  bool insert(const replay::InsertionPtr& insertion, const std::string& table,
              double deadline) override;
  bool flush(double deadline);
  std::size_t in_flight();
  std::optional<std::vector<ReplayPart>> sample(std::int64_t count, double deadline,
                                                double patience);
  void update_priorities(std::span<const std::uint64_t> keys, std::span<const double> priorities,
                         double deadline);
  void set_limiter(const replay::RateLimiterConfig& limiter, double deadline);
  replay::ShardInfo info(double deadline);
  void close();

private:
  replay::ShardClient& open();
  /// Calls `wait(client, until)` repeatedly until it returns true or the deadline has passed.
  template <typename Wait>
  bool patiently(double deadline, Wait wait);

  std::mutex mutex_;
  std::string endpoint_;
  ForkGuard guard_;
  std::unique_ptr<env::wire::Context> context_; // null: closed
  std::unique_ptr<replay::ShardClient> client_; // null: closed
  std::shared_ptr<const replay::Signature> signature_;
};

} // namespace troupe::python
