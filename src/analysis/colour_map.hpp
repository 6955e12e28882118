// Colours for densities: from black over violet, red and orange to a pale yellow.
#pragma once

#include <array>
#include <cstdint>

namespace maki {

using Colour = std::array<std::uint8_t, 3>;  // sRGB

// 256 colours whose perceived lightness rises in equal steps: a path in the OKLCh space (Ottosson 2020), lightness
// linear, hue from violet to yellow, chroma as large as a smooth bump and the sRGB gamut allow.
const std::array<Colour, 256>& density_colours();

// Perceived lightness (OKLab L, 0 to 1) of an sRGB colour.
double lightness(const Colour& colour);

}  // namespace maki
