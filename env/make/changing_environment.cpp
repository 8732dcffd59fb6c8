#include "env/make/changing_environment.hpp"

#include <stdexcept>
#include <utility>

#include "env/make/make.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {
namespace {

constexpr std::uint64_t kMostOptions = 1000;

} // namespace

ChangingEnvironment::ChangingEnvironment(EnvironmentConfig config,
                                         std::shared_ptr<const TaskOptions> options)
    : config_(std::move(config)), options_(std::move(options)) {
  config_.options = *options_->now();
  inner_ = make_environment(config_);
  spec_ = inner_->spec();
}

void ChangingEnvironment::make_with(const TaskOptions::List& options) {
  if (options == config_.options)
    return;
  EnvironmentConfig config = config_;
  config.options = options;
  auto made = make_environment(config);
  if (made->spec().observations != spec_.observations || made->spec().action != spec_.action)
    throw std::runtime_error(
        "environment " + spec_.name
        + " has different observations or actions with its new options; options "
          "that change during a run must keep both");
  std::vector<std::byte> lasting; // running statistics outlive a change of the options
  inner_->save_lasting_state(lasting);
  made->load_lasting_state(lasting);
  inner_ = std::move(made);
  config_ = std::move(config);
}

TimeStep ChangingEnvironment::reset(std::uint64_t seed, std::span<std::byte> observation) {
  make_with(*options_->now());
  return inner_->reset(seed, observation);
}

TimeStep ChangingEnvironment::step(std::span<const double> action,
                                   std::span<std::byte> observation) {
  return inner_->step(action, observation);
}

void ChangingEnvironment::save_state(std::vector<std::byte>& out) const {
  save_value(out, static_cast<std::uint64_t>(config_.options.size()));
  for (const std::string& option : config_.options)
    save_array<char>(out, option);
  inner_->save_state(out);
}

std::span<const std::byte> ChangingEnvironment::load_state(std::span<const std::byte> in) {
  std::uint64_t count = 0;
  load_value(in, count, "number of options");
  if (count > kMostOptions)
    throw std::invalid_argument("saved environment state has " + std::to_string(count)
                                + " options: it was saved with another configuration");
  TaskOptions::List options;
  for (std::uint64_t i = 0; i < count; ++i)
    options.push_back(load_text(in, "options"));
  make_with(options);
  return inner_->load_state(in);
}

} // namespace troupe::env
