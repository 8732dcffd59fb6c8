#include "learner/transparent/process_rendezvous.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "collectives/groups/make_communicator.hpp"
#include "collectives/rendezvous/group_trust.hpp"
#include "collectives/rendezvous/rendezvous.hpp"

namespace troupe::learner::transparent {
namespace {

constexpr std::int64_t kAddress = 300; // bytes for "host port"

} // namespace

ProcessRendezvous::ProcessRendezvous(collectives::ProcessTopology place, const Settings& settings)
    : place_(std::move(place)) {
  options_.timeout = std::chrono::seconds(settings.timeout_seconds);
  options_.connect_timeout = options_.timeout;
  backend_ = !settings.backend.empty()          ? settings.backend
             : place_.local_size == place_.size ? "shared_memory"
                                                : "hierarchical";
  constexpr std::array<const char*, 3> kBackends{"shared_memory", "tcp", "hierarchical"};
  if (std::find(kBackends.begin(), kBackends.end(), backend_) == kBackends.end())
    throw std::invalid_argument("TROUPE_TRANSPARENT_BACKEND=" + backend_
                                + " must be shared_memory, tcp or hierarchical, because gradients "
                                  "travel in the processor's memory; leave it out for the fastest");
}

ProcessRendezvous::~ProcessRendezvous() = default;

std::unique_ptr<collectives::Communicator> ProcessRendezvous::communicator() {
  return collectives::make_communicator(backend_, place_, options_);
}

std::string ProcessRendezvous::way(collectives::Communicator& first) {
  if (place_.rank == 0 && !server_)
    server_ = std::make_unique<collectives::RendezvousServer>(
        place_.local_size == place_.size ? "127.0.0.1" : place_.address);
  auto bytes = at::zeros({kAddress}, at::kByte);
  auto* const text = reinterpret_cast<char*>(bytes.mutable_data_ptr<std::uint8_t>());
  if (server_) {
    const auto address = server_->host() + ' ' + std::to_string(server_->port());
    std::copy_n(address.data(), std::min<std::size_t>(address.size(), kAddress - 1), text);
  }
  first.broadcast(bytes, 0);
  return text;
}

std::unique_ptr<collectives::Communicator>
ProcessRendezvous::another(collectives::Communicator& first) {
  try {
    const auto address = way(first);
    const auto space = address.find(' ');
    const auto store = collectives::connect_rendezvous(
        address.substr(0, space), std::stoi(address.substr(space + 1)), options_);
    return collectives::factory_of(backend_, place_)(
        c10::make_intrusive<c10d::PrefixStore>("other " + std::to_string(++others_), store),
        place_.rank, place_.size, collectives::with_trust(options_, place_));
  } catch (const collectives::CollectiveError&) {
    throw;
  } catch (const std::exception& error) {
    throw collectives::CollectiveError(std::string("cannot make the communicator that sends during "
                                                   "backward (--overlap off needs none): ")
                                       + error.what());
  }
}

} // namespace troupe::learner::transparent
