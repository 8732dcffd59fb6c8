#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>

#include "env/caster/caster_model.hpp"
#include "env/caster/frame.hpp"

namespace troupe::env::caster {

/// Memory that whoever draws can read, kept as long as this.
class KeptMemory {
public:
  virtual ~KeptMemory() = default;
  /// Copies `bytes`; gives where the copy is, for the reader.
  virtual const std::byte* keep(std::span<const std::byte> bytes) = 0;
  /// Overwrites what keep() gave, of the same size.
  virtual void replace(const std::byte* kept, std::span<const std::byte> bytes) = 0;
};

/// For readers on the processor: everything is read where it is.
class InPlace : public KeptMemory {
public:
  const std::byte* keep(std::span<const std::byte> bytes) override { return bytes.data(); }
  void replace(const std::byte*, std::span<const std::byte>) override {}
};

/// What stays from picture to picture, where the reader can see it: textures (at once), meshes and
/// skins' triangles (when first shown), height fields (whenever they change). One thread at a time.
class KeptScene {
public:
  KeptScene(const CasterModel& model, KeptMemory& memory); // memory must outlive this

  const TextureView* texture(const TextureView* texture) const; // null stays null
  MeshView mesh(const MeshView& mesh);
  /// What does not move of a skin; nodes, vertices and normals stay as they are.
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

  KeptMemory& memory_;
  std::unordered_map<const void*, const std::byte*> kept_; // by where they are here
  std::unordered_map<const TextureView*, const TextureView*> textures_;
  std::unordered_map<const HeightFieldView*, Field> fields_;
  std::vector<TextureView> views_; // textures as the reader sees them
};

} // namespace troupe::env::caster
