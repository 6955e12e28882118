// A picture of densities made smaller, for pages that carry their pictures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace maki {

// The picture in a PNG file with at most `pixels` along its longer side, as the bytes of a PNG whose palette are
// density_colours(). Each pixel is the mean of those it stands for. Throws Error where the file cannot be read.
std::vector<unsigned char> thumbnail_of(const std::string& path, std::size_t pixels);

}  // namespace maki
