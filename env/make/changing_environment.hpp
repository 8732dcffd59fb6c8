#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/environment_config.hpp"

namespace troupe::env {

/// A task's options (EnvironmentConfig::options), which may change while it is played, for a
/// curriculum. Any thread may call these functions.
class TaskOptions {
public:
  using List = std::vector<std::string>;

  explicit TaskOptions(List first) : now_(std::make_shared<const List>(std::move(first))) {}
  void set(List options) {
    const std::scoped_lock lock(mutex_);
    now_ = std::make_shared<const List>(std::move(options));
  }
  std::shared_ptr<const List> now() const {
    const std::scoped_lock lock(mutex_);
    return now_;
  }

private:
  mutable std::mutex mutex_;
  std::shared_ptr<const List> now_;
};

/// An environment that makes its task again before an episode if the options have changed. What
/// later episodes depend on, such as running statistics, is kept. A saved state contains the
/// options. reset() and load_state() throw what make_environment() throws, and
/// std::runtime_error if the observations or actions differ with the new options.
class ChangingEnvironment final : public Environment {
public:
  /// The constructor throws what make_environment() throws.
  ChangingEnvironment(EnvironmentConfig config, std::shared_ptr<const TaskOptions> options);

  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override;
  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;
  void save_lasting_state(std::vector<std::byte>& out) const override {
    inner_->save_lasting_state(out);
  }
  std::span<const std::byte> load_lasting_state(std::span<const std::byte> in) override {
    return inner_->load_lasting_state(in);
  }
  Physics* physics() override { return inner_->physics(); }

private:
  void make_with(const TaskOptions::List& options);

  EnvironmentConfig config_; // with the options of the present task
  std::shared_ptr<const TaskOptions> options_;
  std::unique_ptr<Environment> inner_;
  EnvironmentSpec spec_;
};

} // namespace troupe::env
