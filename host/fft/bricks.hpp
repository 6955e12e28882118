// Exchange of the cells of a mesh of m^3 between bricks, one a rank around its domain, and the pencils (lines along z)
// of PencilFft.
//
// A brick is a box of whole cells in the coordinates of its domain, ghosts included: it may reach below 0 and beyond m,
// bricks may overlap, and one may be empty. In a periodic mesh cell i is cell i mod m; otherwise cells outside of [0,
// m) do not exist. Every cell of another rank is sent once, and no message is empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/comm/device_payload.hpp"
#include "host/fft/pencil_fft.hpp"
#include "kernels/device/algorithms.hpp"
#include "kernels/device/buffer.hpp"

namespace maki {

// A box of cells that a brick and a rank's pencils share: its first cell in the brick and in the pencils, and its
// extent.
struct BrickPiece {
  std::array<std::size_t, 3> in_brick, in_pencils, count;
  std::size_t cells() const { return count[0] * count[1] * count[2]; }
};
// The cells shared by `brick` and `pencils`, in a fixed order. `pencils` is a box within the mesh. A brick longer than
// m has several pieces with the same cell.
std::vector<BrickPiece> brick_pieces(const PencilBox& brick, const PencilBox& pencils, int m, bool periodic);

class BrickExchange {
 public:
  // Collective over the communicator, as are the calls below; made anew when domains change. `brick` is this rank's.
  // Messages use the path of `path` and share its staging memory, since choosing a path is itself an exchange.
  BrickExchange(const DevicePayload& path, const PencilLayout& layout, const PencilBox& brick, bool periodic);

  const PencilBox& brick() const { return brick_; }
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
  // Fills every cell of the brick, ghosts too, from the mesh; cells outside the mesh become 0.
  void fetch(const Stream& stream, const float* mesh, std::size_t row, float* brick);

  DevicePayload::Traffic traffic() const { return messages_.traffic(); }
  std::size_t bytes() const { return out_.capacity() + in_.capacity() + messages_.bytes(); }  // work space

 private:
  struct Link {
    int peer;
    std::size_t first, cells;  // of the peer's message, in the buffer of all messages
    std::vector<BrickPiece> pieces;
  };
  // Some of the cells of a received message, and their place in the brick.
  struct Landing {
    std::size_t first;  // in the buffer of all messages
    std::array<std::size_t, 3> message_steps, in_brick, count;
  };
  static std::size_t total(const std::vector<Link>& links);
  void find_landings();
  void find_own_rows();
  void send_and_receive(const Stream& stream, const std::vector<Link>& to, const std::vector<Link>& from,
                        std::size_t cell_bytes, int tag);
  void send_masses(const Stream& stream, const std::uint64_t* brick);

  DevicePayload messages_;
  PencilBox brick_, pencils_;
  std::vector<Link> of_brick_;    // cells of this rank's brick in other ranks' pencils, by rank
  std::vector<Link> of_pencils_;  // cells of this rank's pencils in other ranks' bricks, by rank
  std::vector<BrickPiece> own_;   // cells of the brick in this rank's own pencils, never sent
  bool holds_pencils_ = false;
  std::vector<Landing> landings_;  // if it holds them: those of all messages
  std::vector<std::uint8_t> own_rows_;
  DeviceBuffer<char> out_{"mesh.bricks_sent"}, in_{"mesh.bricks_received"};
};

}  // namespace maki
