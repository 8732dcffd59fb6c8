#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"
#include "env/caster/shape_builder.hpp"

namespace troupe::env::caster {

/// Memory that the drawing device can read. It is freed with this object.
class SceneMemory {
public:
  virtual ~SceneMemory() = default;
  /// Copies `bytes` and returns the copy's address on the reader's side.
  virtual const std::byte* keep(std::span<const std::byte> bytes) = 0;
  /// Overwrites a copy that keep() made; the size must be the same.
  virtual void replace(const std::byte* kept, std::span<const std::byte> bytes) = 0;
};

/// Data that stays in the reader's memory from picture to picture: textures (from the start),
/// meshes and the triangles of skins (when first shown), and height fields (updated when they
/// change). One thread at a time may call it. For a frame for which has() returns true, any number
/// of threads may call it at once.
class KeptScene {
public:
  KeptScene(const CasterModel& model, SceneMemory& memory); // memory must outlive this

  /// Returns whether everything that the frame shows is kept, with the current state of its height
  /// fields.
  bool has(const Frame& frame, const MovingParts& parts) const;

  const TextureView* texture(const TextureView* texture) const; // null gives null
  MeshView mesh(const MeshView& mesh);
  /// Returns a view with the kept copies of the skin's constant arrays. Its nodes, vertices and
  /// normals are those of `skin`.
  MeshView still_parts(const MeshView& skin);
  /// Must be called before field() if heights or sizes may have changed.
  void update(const HeightField& field);
  const HeightFieldView* field(const HeightFieldView* field) const;

private:
  struct Field {
    std::uint64_t version = 0;
    HeightFieldView view; // with the reader's addresses
    const HeightFieldView* at = nullptr;
  };

  template <class T>
  const T* keep(const T* values, std::size_t count);

  SceneMemory& memory_;
  std::unordered_map<const void*, const std::byte*> kept_; // by host address
  std::unordered_map<const TextureView*, const TextureView*> textures_;
  std::unordered_map<const HeightFieldView*, Field> fields_;
  std::vector<TextureView> views_; // textures with the reader's addresses
};

} // namespace troupe::env::caster
