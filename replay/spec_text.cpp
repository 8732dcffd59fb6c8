#include "replay/spec_text.hpp"

#include <sstream>

namespace troupe::replay {

std::string describe(const TransitionSpec& spec) {
  std::ostringstream text;
  text.precision(17);
  text << "frame " << spec.frame.name << ' ' << env::element_name(spec.frame.type) << " [";
  for (std::size_t i = 0; i < spec.frame.shape.size(); ++i)
    text << (i > 0 ? ", " : "") << spec.frame.shape[i];
  text << "], stack " << spec.stack << ", action_size " << spec.action_size << ", n_step "
       << spec.n_step << ", discount " << spec.discount;
  return text.str();
}

std::uint64_t fingerprint(const TransitionSpec& spec) {
  std::uint64_t hash = 14695981039346656037U; // FNV-1a
  for (const char c : describe(spec)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211U;
  }
  return hash;
}

} // namespace troupe::replay
