#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

/// Memory that the drawing processor can read; freed with this object.
class SceneMemory {
public:
  virtual ~SceneMemory() = default;
  /// Copies `bytes`; returns the copy's address for the reader.
  virtual const std::byte* keep(std::span<const std::byte> bytes) = 0;
  /// Overwrites a copy of keep() of the same size.
  virtual void replace(const std::byte* kept, std::span<const std::byte> bytes) = 0;
};

/// For readers on the processor: nothing is copied.
class InPlace : public SceneMemory {
public:
  const std::byte* keep(std::span<const std::byte> bytes) override { return bytes.data(); }
  void replace(const std::byte*, std::span<const std::byte>) override {}
};

/// Data that stays from picture to picture, in the reader's memory: textures (from the start),
/// meshes and skins' triangles (when first shown), height fields (whenever they change). One thread
/// at a time, but any number for a frame of which has() says that everything is there.
class KeptScene {
public:
  KeptScene(const CasterModel& model, SceneMemory& memory); // memory must outlive this

  /// All that the frame shows is kept, its height fields as they are now.
  bool has(const Frame& frame, const MovingParts& parts) const;

  const TextureView* texture(const TextureView* texture) const; // null stays null
  MeshView mesh(const MeshView& mesh);
  /// The constant arrays of a skin; nodes, vertices and normals are unchanged.
  MeshView still_parts(const MeshView& skin);
  /// To be called before field() when heights or sizes may have changed.
  void update(const HeightField& field);
  const HeightFieldView* field(const HeightFieldView* field) const;

private:
  struct Field {
    std::uint64_t version = 0;
    HeightFieldView view; // as the reader sees it
    const HeightFieldView* at = nullptr;
  };

  template <class T>
  const T* keep(const T* values, std::size_t count);

  SceneMemory& memory_;
  std::unordered_map<const void*, const std::byte*> kept_; // by where they are here
  std::unordered_map<const TextureView*, const TextureView*> textures_;
  std::unordered_map<const HeightFieldView*, Field> fields_;
  std::vector<TextureView> views_; // textures as the reader sees them
};

} // namespace troupe::env::caster
