#include "env/caster/cuda/batch_drawing.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::env::caster {

namespace {

constexpr std::size_t kAlignment = 64;

int checked_threads(int threads) {
  if (threads < 1)
    throw std::invalid_argument("threads: " + std::to_string(threads)
                                + " is out of range; it must be at least 1");
  return threads;
}

} // namespace

BatchDrawing::BatchDrawing(std::shared_ptr<const CasterModel> model, int environments,
                           const CastOptions& options, int threads, CudaDevice& device)
    : device_(device),
      frames_(std::move(model), environments, options, device),
      effects_(options.effects),
      workers_(checked_threads(threads) == 1 ? 0 : threads) {
  for (std::size_t first = 0; first < frames_.environments(); first += kPieceSize) {
    auto piece = std::make_unique<Piece>();
    piece->first = first;
    piece->count = std::min(kPieceSize, frames_.environments() - first);
    pieces_.push_back(std::move(piece));
  }
  device_.allocate_pictures(bytes());
}

std::size_t BatchDrawing::room_for_views(const Piece& piece) const {
  return (piece.count * sizeof(FrameView) + kAlignment - 1) / kAlignment * kAlignment;
}

void BatchDrawing::draw(std::span<const mjModel* const> models,
                        std::span<const mjData* const> states, std::span<std::uint8_t> host) {
  if (!host.empty() && host.size() != bytes())
    throw std::invalid_argument("the pictures need a buffer of " + std::to_string(bytes())
                                + " bytes, or an empty one; it has " + std::to_string(host.size()));
  frames_.check(models, states);
  if (!pass(true, models, states)) {
    make_room();
    pass(false, models, states);
  }
  device_.finish(host);
}

/// Builds (optionally), packs and queues all frames. Returns false if a frame did not fit into its
/// room.
bool BatchDrawing::pass(bool build, std::span<const mjModel* const> models,
                        std::span<const mjData* const> states) {
  for (const auto& piece : pieces_)
    piece->left = piece->count;
  lacks_room_ = false;
  failed_ = false;
  workers_.start(frames_.environments(), [&, build](std::size_t i) {
    try {
      if (build && !failed_)
        frames_.build(i, *models[models.size() == 1 ? 0 : i], *states[i]);
      if (!failed_)
        pack(i);
    } catch (...) {
      fail();
    }
    Piece& piece = piece_of(i);
    if (--piece.left == 0)
      piece.left.notify_all();
  });
  for (std::size_t number = 0; number < pieces_.size(); ++number) {
    Piece& piece = *pieces_[number];
    for (std::size_t left = piece.left; left != 0; left = piece.left)
      piece.left.wait(left);
    if (lacks_room_ || failed_)
      break;
    try {
      queue(number);
    } catch (...) {
      fail();
    }
  }
  workers_.finish();
  if (lacks_room_ || failed_)
    device_.finish({}); // the queued work reads the staging memory
  if (failed_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
  return !lacks_room_;
}

/// Makes room for frames slightly larger than the current largest one.
void BatchDrawing::make_room() {
  std::size_t most = 0;
  for (std::size_t i = 0; i < frames_.environments(); ++i)
    most = std::max(most, frames_.bytes(i));
  room_ = (most + most / 8 + kAlignment - 1) / kAlignment * kAlignment;
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    pieces_[i]->staging =
        device_.staging(i, room_for_views(*pieces_[i]) + pieces_[i]->count * room_);
}

void BatchDrawing::pack(std::size_t environment) {
  if (frames_.bytes(environment) > room_) {
    lacks_room_ = true;
    return;
  }
  const Piece& piece = piece_of(environment);
  const std::size_t place = environment - piece.first;
  const std::size_t at = room_for_views(piece) + place * room_;
  reinterpret_cast<FrameView*>(piece.staging.host)[place] =
      frames_.pack(environment, piece.staging.host + at, piece.staging.device + at);
}

void BatchDrawing::queue(std::size_t number) {
  const Piece& piece = *pieces_[number];
  Launch launch{.frames = reinterpret_cast<const FrameView*>(piece.staging.device),
                .first = static_cast<int>(piece.first),
                .environments = static_cast<int>(piece.count),
                .format = frames_.format(),
                .effects = effects_};
  for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
    launch.words = std::max(launch.words, frames_.words(i));
    (frames_.orthographic(i) ? launch.any_orthographic : launch.any_perspective) = true;
  }
  if (launch.words > kMostWords)
    throw std::runtime_error("the scene shows more than the GPU's kernel can list ("
                             + std::to_string(launch.words) + " words of candidates, at most "
                             + std::to_string(kMostWords) + "); draw it with RayCaster");
  device_.begin(number, room_for_views(piece) + piece.count * room_, launch);
}

void BatchDrawing::fail() {
  const std::lock_guard lock(mutex_);
  if (!failed_.exchange(true))
    failure_ = std::current_exception();
}

} // namespace troupe::env::caster
