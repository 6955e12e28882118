#include "src/analysis/thumbnail.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "kernels/error.hpp"
#include "src/analysis/picture.hpp"

namespace maki {
namespace {

struct Box {
  std::size_t left, right, top, bottom;
};

Error trouble_with(const std::string& path, const png_image& image) {
  return Error(fmt::format("cannot read '{}'", path), image.message, "is it a whole PNG file?");
}

Picture read_png(const std::string& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_file(&image, path.c_str())) throw trouble_with(path, image);
  image.format = PNG_FORMAT_RGB;
  Picture picture(image.width, image.height);
  const png_color black{};
  if (!png_image_finish_read(&image, &black, picture.at(0, 0).data(), 0, nullptr)) throw trouble_with(path, image);
  return picture;
}

Colour mean_of(const Picture& from, const Box& box) {
  std::array<std::size_t, 3> sum{};
  for (std::size_t y = box.top; y < box.bottom; ++y)
    for (std::size_t x = box.left; x < box.right; ++x)
      for (std::size_t c = 0; c < 3; ++c) sum[c] += from.at(x, y)[c];
  const std::size_t count = (box.right - box.left) * (box.bottom - box.top);
  Colour mean{};
  for (std::size_t c = 0; c < 3; ++c) mean[c] = static_cast<std::uint8_t>((sum[c] + count / 2) / count);
  return mean;
}

Picture shrunk(const Picture& from, std::size_t most) {
  const std::size_t longer = std::max({from.width(), from.height(), most});
  const auto scaled = [&](std::size_t n) { return std::max<std::size_t>(n * most / longer, 1); };
  Picture to(scaled(from.width()), scaled(from.height()));
  for (std::size_t y = 0; y < to.height(); ++y)
    for (std::size_t x = 0; x < to.width(); ++x)
      to.at(x, y) = mean_of(from, {x * from.width() / to.width(), (x + 1) * from.width() / to.width(),
                                   y * from.height() / to.height(), (y + 1) * from.height() / to.height()});
  return to;
}

std::uint8_t nearest_of_palette(const Colour& colour) {
  const auto& colours = density_colours();
  int best = std::numeric_limits<int>::max();
  std::size_t nearest = 0;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    int distance = 0;
    for (std::size_t c = 0; c < 3; ++c) distance += (colour[c] - colours[i][c]) * (colour[c] - colours[i][c]);
    if (distance < best) best = distance, nearest = i;
  }
  return static_cast<std::uint8_t>(nearest);
}

std::vector<unsigned char> palette_png(const Picture& picture, const std::string& path) {
  std::vector<std::uint8_t> indices;
  for (std::size_t y = 0; y < picture.height(); ++y)
    for (std::size_t x = 0; x < picture.width(); ++x) indices.push_back(nearest_of_palette(picture.at(x, y)));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width());
  image.height = static_cast<png_uint_32>(picture.height());
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = 256;
  std::vector<unsigned char> bytes(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, indices.data(), 0, density_colours().data()))
    throw trouble_with(path, image);
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<unsigned char> thumbnail_of(const std::string& path, std::size_t pixels) {
  return palette_png(shrunk(read_png(path), pixels), path);
}

}  // namespace maki
