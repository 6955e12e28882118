// The bricks: the part of the mesh around each rank's particles. Masses go from bricks to the pencils (lines along z)
// of PencilFft, and forces come back.
//
// The brick of a rank is the box of cells that its particles' clouds touch. It is derived from the particles: along
// each axis, the longest run of empty planes is left out, across the periodic edge too. It is a little larger than
// needed, and all bricks are kept as long as the particles of every rank fit into theirs. A rank without particles has
// an empty one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "host/comm/communicator.hpp"
#include "host/comm/device_payload.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/device/algorithms.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/mesh/assign.hpp"
#include "kernels/mesh/mass_unit.hpp"

namespace maki {

// A box of cells that a brick and a rank's pencils share: its first cell in the brick and in the pencils, and its
// extent. Where it is sent, also the place of its first cell in the buffer of all messages.
struct BrickPiece {
  std::array<std::size_t, 3> in_brick, in_pencils, count;
  std::size_t in_messages = 0;
  std::size_t cells() const { return count[0] * count[1] * count[2]; }
};

// Exchange of the cells of a mesh of m^3 between bricks, one a rank around its domain, and the pencils (lines along z)
// of PencilFft.
//
// A brick is a box of whole cells in the coordinates of its domain: it may reach below 0 and beyond m, bricks may
// overlap, and one may be empty. Cell i of the mesh is cell i mod m. Every cell of another rank is sent once, and no
// message is empty.
class BrickExchange {
 public:
  // Collective over the communicator, as are the calls below; made anew when domains change. `brick` is this rank's.
  // Messages go by a copy of `path`, which shares its staging memory: choosing a path again would be an exchange.
  BrickExchange(const DevicePayload& path, const PencilLayout& layout, const PencilBox& brick);

  std::size_t size() const { return brick_.cells(); }  // cells of the brick, lines [x][y][z] without padding

  // Overwrites `mesh` with the sum over all bricks, exact and so the same for any division into bricks. `mesh`: lines
  // [x][y][z] of this rank's pencils (PencilFft::cells()), `row` numbers apart.
  void sum(const Stream& stream, const std::uint64_t* brick, std::uint64_t* mesh, std::size_t row);
  // The same sum in place, for a brick that holds all of this rank's pencils (holds_pencils()); its other cells are
  // undefined afterwards. Every rank of the exchange calls either this or sum().
  void sum_in_brick(const Stream& stream, std::uint64_t* brick);
  bool holds_pencils() const { return holds_pencils_; }
  // The cells that the brick and this rank's pencils share.
  const std::vector<BrickPiece>& own_pieces() const { return own_; }
  // For a brick that holds the pencils, by row [x][y] of the brick: 1 where no cell is sent or received.
  const std::vector<std::uint8_t>& own_rows() const { return own_rows_; }
  // Fills every cell of the brick from the mesh.
  void fetch(const Stream& stream, const float* mesh, std::size_t row, float* brick);

 private:
  struct Link {
    int peer;
    std::size_t first, cells;  // of the peer's message, in the buffer of all messages
  };
  struct Messages {
    std::vector<Link> links;
    std::vector<BrickPiece> pieces;  // of all messages, by rank
    std::size_t cells = 0;
    void add(int peer, const std::vector<BrickPiece>& shared);
  };
  // Some of the cells of a received message, and their place in the brick.
  struct Landing {
    std::size_t first;  // in the buffer of all messages
    std::array<std::size_t, 3> message_steps, in_brick, count;
  };
  void find_landings();
  void find_own_rows();
  void send_and_receive(const Stream& stream, const Messages& to, const Messages& from, std::size_t cell_bytes,
                        int tag);
  void send_masses(const Stream& stream, const std::uint64_t* brick);

  DevicePayload messages_;
  PencilBox brick_, pencils_;
  Messages of_brick_;            // cells of this rank's brick in other ranks' pencils
  Messages of_pencils_;          // cells of this rank's pencils in other ranks' bricks
  std::vector<BrickPiece> own_;  // cells of the brick in this rank's own pencils, never sent
  bool holds_pencils_ = false;
  std::vector<Landing> landings_;  // if it holds them: those of all messages
  std::vector<std::uint8_t> own_rows_;
  DeviceBuffer<char> out_{"mesh.bricks_sent"}, in_{"mesh.bricks_received"};
};

// mass_range() of all ranks' particles. Collective.
MassRange mass_range(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                     std::size_t n);

// MassTotals of all ranks' particles, which their unit depends on; the same on every rank. `range`: of a larger set.
// Collective.
MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n);
MassTotals mass_totals(const Communicator& communicator, const Stream& stream, const SourceParticle* particles,
                       std::size_t n, const MassRange& range);

// choose_mass_unit() of all ranks' particles: the same on every rank as on one rank with all of them. Errors are the
// same on all ranks, and nothing is rounded. Collective.
MassUnit choose_mass_unit(const Communicator& communicator, const Stream& stream, Assignment assignment, int cells,
                          const SourceParticle* particles, std::size_t n);

// The shortest run of planes that holds all marked ones, across the periodic edge if necessary: first in [0, m), end up
// to first + m. Empty if none is marked.
PencilRange occupied_run(const std::vector<std::uint32_t>& marks);

// Mass assignment from all ranks' particles to their pencils, and the cells of a mesh around this rank's particles.
class ParticleBrick {
 public:
  // `row`: floats from one line of the pencils' mesh to the next. `interlaced`: there are two meshes of masses, the
  // second with all particles half a cell further.
  ParticleBrick(const Communicator& communicator, const PencilLayout& layout, std::size_t row, Assignment cloud,
                bool interlaced);

  // Overwrites `mesh`, the lines of this rank's pencils, with the mass of all ranks' particles in each cell less the
  // mean, and `shifted`, where interlaced, likewise. The bits are the same for any number of ranks and any division of
  // the particles. n may be 0; `unit` is that of all ranks' particles. Collective.
  void assign(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit, float* mesh,
              float* shifted);

  // The steps of assign(), so that counts of other sites can be added in between. take() sets the particles; count()
  // counts all ranks' particles in the lines of this rank's pencils (counts() numbers, no padding), for the mesh and
  // where interlaced for the shifted one; to_masses() converts the counts. Collective. `zero`: all counts are zero
  // already, as after a to_masses() that returned true.
  void take(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);
  std::size_t counts() const { return layout_.box(Pencils::kReal, communicator_.rank()).cells(); }
  void count(const Stream& stream, bool shifted, std::uint64_t* counts, bool zero = false);
  bool to_masses(const Stream& stream, const MassUnit& unit, std::uint64_t* counts, float* mesh) const;

  // For one rank: makes the brick the whole mesh, so that particles are counted directly in the lines of the pencils,
  // and forces are interpolated from the mesh itself.
  void hold_all();
  bool holds_all() const { return all_; }
  // By plane x of the mesh: 0 where the forces on the last particles taken need no cell of the plane.
  std::vector<std::uint8_t> planes() const;

  // The cells that hold the clouds of the particles last assigned.
  const MeshBox& box() const { return box_; }
  // Values of a mesh in the cells of the box, no padding; none for an empty box. Valid until the next call of this
  // object. Collective.
  const float* fetch(const Stream& stream, const float* mesh);

 private:
  void fit(const Stream& stream, const SourceParticle* particles, std::size_t n);
  void make(const Stream& stream, const SourceParticle* particles, std::size_t n);
  void assign_one(const Stream& stream, const MassUnit& unit, bool shifted, float* mesh);

  Communicator communicator_;
  DevicePayload path_;  // of all bricks
  PencilLayout layout_;
  std::size_t row_;
  bool interlaced_;
  CloudReach reach_;
  bool all_ = false;
  MeshBox room_;  // allowed cells of particles
  MeshBox box_;   // allowed cells of their clouds
  std::optional<BrickExchange> exchange_;
  MassCounter counter_;
  DeviceBuffer<std::uint64_t> brick_{"mesh.brick"};    // counts of the brick, or its values
  DeviceBuffer<std::uint64_t> counts_{"mesh.counts"};  // of the pencils, if the brick does not hold them
};

}  // namespace maki
