#include "env/caster/cuda/batch_frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include "env/caster/cuda/arena.hpp"
#include "env/caster/frame_builder.hpp"
#include "env/caster/picture.hpp"

namespace troupe::env::caster {

namespace {

template <class T>
std::span<const T> put(Arena& arena, const std::vector<T>& values) {
  return arena.put(values.data(), values.size());
}

SpanSetView put_spans(Arena& arena, const SpanSet& set) {
  SpanSetView view;
  view.items = put(arena, set.items);
  view.ranges = put(arena, set.ranges);
  const auto numbers = arena.take<std::int32_t>(set.items.size());
  for (std::size_t i = 0; i < set.items.size() && numbers.here != nullptr; ++i)
    numbers.here[i] = set.items[i].item;
  view.numbers = numbers.seen;
  return view;
}

std::span<const LightTableView> put_tables(Arena& arena, const Frame& frame) {
  const auto tables = arena.take<LightTableView>(frame.tables.size());
  for (std::size_t i = 0; i < frame.tables.size(); ++i) {
    const LightTable& from = frame.tables[i];
    LightTableView view;
    static_cast<LightWindow&>(view) = from;
    const std::size_t size = from.light < 0 ? 0
                                            : static_cast<std::size_t>(from.count[0])
                                                  * static_cast<std::size_t>(from.count[1]);
    view.ambient = arena.put(from.ambient.data(), size);
    view.diffuse = arena.put(from.diffuse.data(), size);
    view.specular = arena.put(from.specular.data(), size);
    if (tables.here != nullptr)
      tables.here[i] = view;
  }
  return tables.seen;
}

/// Marks the blocks that may show a thin shape.
std::span<const std::uint8_t> put_thin(Arena& arena, const Frame& frame) {
  const auto columns = static_cast<std::size_t>(frame.block_columns);
  const std::size_t count = columns * static_cast<std::size_t>(frame.block_rows);
  const auto thin = arena.take<std::uint8_t>(count);
  if (thin.here == nullptr)
    return thin.seen;
  std::memset(thin.here, 0, count);
  for (const SpanItem& item : frame.visible.items) {
    if (!frame.shapes[static_cast<std::size_t>(item.item)].thin)
      continue;
    for (std::int32_t row = item.first_row; row <= item.last_row; ++row) {
      const BlockRange& range =
          frame.visible.ranges[item.ranges + static_cast<std::size_t>(row - item.first_row)];
      for (std::size_t column = range.first; column <= range.last; ++column)
        thin.here[static_cast<std::size_t>(row) * columns + column] = 1;
    }
  }
  return thin.seen;
}

MeshView put_skin(Arena& arena, KeptScene* kept, const MeshView& skin) {
  MeshView view = kept != nullptr ? kept->still_parts(skin) : skin;
  view.nodes = arena.put(skin.nodes, static_cast<std::size_t>(skin.node_count)).data();
  view.vertices = arena.put(skin.vertices, 4 * static_cast<std::size_t>(skin.vertex_count)).data();
  view.normals = arena.put(skin.normals, 4 * static_cast<std::size_t>(skin.normal_count)).data();
  return view;
}

/// The bytes of a shape with this many lights.
std::size_t shape_bytes(std::size_t lights) {
  static_assert(offsetof(Shape, lights) + sizeof(Shape::lights) <= sizeof(Shape));
  const std::size_t used = offsetof(Shape, lights) + lights * sizeof(LocalLight);
  return (used + alignof(Shape) - 1) / alignof(Shape) * alignof(Shape);
}

/// `kept` is null when only counting.
StridedView<Shape> put_shapes(Arena& arena, KeptScene* kept, const Frame& frame) {
  const std::size_t stride = shape_bytes(frame.lights.size());
  const auto bytes = arena.take<std::byte>(stride * frame.shapes.size());
  for (std::size_t i = 0; i < frame.shapes.size(); ++i) {
    if (kept == nullptr) {
      if (frame.shapes[i].kind == ShapeKind::skin)
        put_skin(arena, kept, frame.shapes[i].mesh);
      continue;
    }
    Shape shape = frame.shapes[i];
    shape.texture = kept->texture(shape.texture);
    shape.field = kept->field(shape.field);
    if (shape.kind == ShapeKind::mesh)
      shape.mesh = kept->mesh(shape.mesh);
    else if (shape.kind == ShapeKind::skin)
      shape.mesh = put_skin(arena, kept, shape.mesh);
    std::memcpy(bytes.here + i * stride, &shape, std::min(stride, sizeof(Shape)));
  }
  return {bytes.seen.data(), stride, frame.shapes.size()};
}

FrameView put_frame(Arena& arena, KeptScene* kept, const Frame& frame) {
  FrameView view;
  static_cast<FrameNumbers&>(view) = frame;
  if (kept != nullptr)
    view.sky = kept->texture(frame.sky);
  view.shapes = put_shapes(arena, kept, frame);
  if (frame.hazy != nullptr)
    view.hazy = &view.shapes[static_cast<std::size_t>(frame.hazy - frame.shapes.data())];
  view.lights = put(arena, frame.lights);
  view.visible = put_spans(arena, frame.visible);
  view.mirrored = put_spans(arena, frame.mirrored);
  view.shadowed = put_spans(arena, frame.shadowed);
  view.pairs = put(arena, frame.pairs);
  view.caster_first = put(arena, frame.caster_first);
  view.caster_list = put(arena, frame.caster_list);
  view.tables = put_tables(arena, frame);
  view.thin = put_thin(arena, frame);
  return view;
}

std::size_t set_words(const SpanSet& set) {
  return (set.items.size() + 63) / 64;
}

} // namespace

BatchFrames::BatchFrames(std::shared_ptr<const CasterModel> model, int environments,
                         const CastOptions& options, SceneMemory& memory)
    : model_(std::move(model)) {
  const RayCaster same_rules(model_, options); // throws if the options are invalid
  if (environments < 1)
    throw std::invalid_argument("environments: " + std::to_string(environments)
                                + " is out of range; a batch needs at least 1");
  format_ = {.height = options.height,
             .width = options.width,
             .grey = options.grey,
             .interleaved = options.layout == PixelLayout::channels_last};
  kept_ = std::make_unique<KeptScene>(*model_, memory);
  bytes_.resize(static_cast<std::size_t>(environments));
  for (int i = 0; i < environments; ++i)
    environments_.push_back(std::make_unique<FrameBuilder>(*model_, options));
}

BatchFrames::~BatchFrames() = default;

void BatchFrames::check(std::span<const mjModel* const> models,
                        std::span<const mjData* const> states) const {
  if (states.size() != environments_.size()
      || (models.size() != environments_.size() && models.size() != 1))
    throw std::invalid_argument("a batch of " + std::to_string(environments_.size())
                                + " environments needs as many states and as many models (or one); "
                                  "there are "
                                + std::to_string(states.size()) + " and "
                                + std::to_string(models.size()));
}

void BatchFrames::build(std::size_t number, const mjModel& model, const mjData& data) {
  FrameBuilder& environment = *environments_[number];
  environment.update(model, data);
  kernels_of(environment.frame).tables(environment.frame);
  Arena counting(nullptr, nullptr);
  put_frame(counting, nullptr, environment.frame);
  bytes_[number] = counting.used();
}

std::size_t BatchFrames::words(std::size_t environment) const {
  const Frame& frame = environments_[environment]->frame;
  return set_words(frame.visible) + set_words(frame.mirrored) + set_words(frame.shadowed);
}

bool BatchFrames::orthographic(std::size_t environment) const {
  return environments_[environment]->frame.camera.orthographic;
}

FrameView BatchFrames::pack(std::size_t number, std::byte* block, const std::byte* seen) {
  const FrameBuilder& environment = *environments_[number];
  Arena arena(block, seen);
  {
    const std::shared_lock lock(mutex_);
    if (kept_->has(environment.frame, environment.parts))
      return put_frame(arena, kept_.get(), environment.frame);
  }
  const std::unique_lock lock(mutex_);
  for (const HeightField& field : environment.parts.fields)
    kept_->update(field);
  return put_frame(arena, kept_.get(), environment.frame);
}

} // namespace troupe::env::caster
