#include "replay/writers/episode_items.hpp"

#include <stdexcept>
#include <string>

namespace troupe::replay {

namespace {

class EpisodeItems final : public ItemPolicy {
public:
  explicit EpisodeItems(const EpisodeOptions& options) : options_(options) {}

  void before_row(Writer& /*writer*/, std::int64_t row) override {
    if (row == options_.max_rows && options_.too_long == LongEpisode::refuse)
      throw std::length_error("replay episodes: the episode has more rows than max_rows = "
                              + std::to_string(options_.max_rows)
                              + "; raise it, end the episode earlier, or have it cut");
  }

  void after_row(Writer& writer, std::int64_t rows, bool last) override {
    const std::int64_t count = (rows - 1) % options_.max_rows + 1; // since the last cut
    if (last || (count == options_.max_rows && options_.too_long == LongEpisode::cut))
      writer.add_item(Window{writer.rows() - count, count});
  }

private:
  EpisodeOptions options_;
};

} // namespace

Writer episode_writer(const Signature& signature, std::uint64_t writer_id,
                      const EpisodeOptions& options, const ItemPriority& priority) {
  return Writer(signature, writer_id,
                {.chunk_rows = options.chunk_rows, .reach = options.max_rows, .priority = priority},
                std::make_unique<EpisodeItems>(options));
}

} // namespace troupe::replay
