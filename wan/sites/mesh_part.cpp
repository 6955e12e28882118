#include "wan/sites/mesh_codec.hpp"

#include <algorithm>
#include <cstring>

namespace maki::sites {
namespace {

[[noreturn]] void refuse(const char* reason) {
  throw Error("masses of another site cannot be read", reason, "run the same version and configuration at all sites");
}

constexpr std::uint64_t kMagic = 0x33485345'4d494b41;

// The meaning of the counts, equal at all sites.
struct Head {
  std::uint64_t magic = kMagic;
  std::int32_t cells = 0, meshes = 0, bits = 0, dropped_bits = 0;
  std::uint32_t equal_units = 0, pieces = 0, chunks = 0;
  std::int32_t shed_bits = 0;
  double units_per_mass = 0;
};

struct ChunkHead {
  std::int32_t first_plane = 0, first_row = 0, planes = 0, rows = 0;
  std::uint64_t bytes = 0;
};

Head head_of(const MeshHeader& header) {
  Head head;
  head.cells = header.cells;
  head.meshes = header.meshes;
  head.bits = header.unit.bits;
  head.shed_bits = header.unit.shed_bits;
  head.dropped_bits = header.unit.dropped_bits;
  head.equal_units = header.unit.equal_units;
  head.units_per_mass = header.unit.units_per_mass;
  return head;
}

template <class T>
void append(Message& message, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  message.insert(message.end(), bytes.begin(), bytes.end());
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::span<const std::byte> bytes(std::uint64_t count) {
    if (count > rest_.size()) refuse("a part ends too early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  template <class T>
  T value() {
    T value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

MeshChunk read_chunk(Reader& reader, const MeshHeader& header) {
  const auto head = reader.value<ChunkHead>();
  const int m = header.cells;
  const auto within = [m](std::int32_t first, std::int32_t count) {
    return first >= 0 && count > 0 && first < m && count <= m - first;
  };
  if (!within(head.first_plane, head.planes) || !within(head.first_row, head.rows))
    refuse("a part lies beyond the mesh");
  if (head.planes > chunk_planes(head.rows, m)) refuse("a part has too many planes");
  MeshChunk chunk{head.first_plane, head.first_row, {}, {}, {}};
  chunk.block = {head.planes, head.rows, m, header.meshes, header.unit.dropped_bits, header.unit.shed_bits, {}};
  for (int mesh = 0; mesh < header.meshes; ++mesh) {
    for (std::byte kind : reader.bytes(static_cast<std::uint64_t>(head.planes))) {
      if (std::to_integer<int>(kind) > static_cast<int>(Plane::kExact)) refuse("a plane is of no known kind");
      chunk.block.kind[static_cast<std::size_t>(mesh)].push_back(static_cast<Plane>(kind));
    }
  }
  const auto is_empty = [](Plane kind) { return kind == Plane::kEmpty; };
  if (std::ranges::all_of(chunk.block.kind[0], is_empty) && std::ranges::all_of(chunk.block.kind[1], is_empty))
    refuse("a chunk is empty");
  chunk.coded = reader.bytes(head.bytes);
  return chunk;
}

}  // namespace

int chunk_planes(int rows, int length) {
  constexpr std::int64_t kCells = std::int64_t{1} << 20, kMost = 16;
  return static_cast<int>(std::clamp<std::int64_t>(kCells / (std::int64_t{rows} * length), 1, kMost));
}

Message pack(const MeshHeader& header, std::uint32_t pieces, std::span<const MeshChunk> chunks) {
  Head head = head_of(header);
  head.pieces = pieces;
  head.chunks = static_cast<std::uint32_t>(chunks.size());
  Message message;
  append(message, head);
  for (const MeshChunk& chunk : chunks) {
    append(message,
           ChunkHead{chunk.first_plane, chunk.first_row, chunk.block.planes, chunk.block.rows, chunk.bytes.size()});
    for (int mesh = 0; mesh < header.meshes; ++mesh)
      for (Plane kind : chunk.block.kind[static_cast<std::size_t>(mesh)]) append(message, kind);
    message.insert(message.end(), chunk.bytes.begin(), chunk.bytes.end());
  }
  return message;
}

MeshPart unpack(const MeshHeader& header, std::span<const std::byte> message) {
  Reader reader(message);
  Head head = reader.value<Head>();
  MeshPart part{head.pieces, {}};
  const std::uint32_t chunks = head.chunks;
  head.pieces = head.chunks = 0;
  const Head mine = head_of(header);
  if (std::memcmp(&head, &mine, sizeof head) != 0) refuse("they are of another mesh, or of another unit of mass");
  if (part.pieces == 0 || part.pieces > static_cast<std::uint32_t>(header.cells)) refuse("it is in too many pieces");
  // Chunks of a part are added at the same time, so they may not share planes.
  int next_plane = 0;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    const MeshChunk& chunk = part.chunks.emplace_back(read_chunk(reader, header));
    if (chunk.first_plane < next_plane) refuse("its parts are not in order");
    next_plane = chunk.first_plane + chunk.block.planes;
  }
  if (!reader.empty()) refuse("a part is longer than its chunks");
  return part;
}

}  // namespace maki::sites
