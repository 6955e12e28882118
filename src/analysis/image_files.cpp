#include "src/analysis/picture.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <limits>
#include <utility>

#include "kernels/error.hpp"
#include "src/io/safe_file.hpp"

namespace maki {

namespace {

constexpr Colour kInk{255, 255, 255};

struct Range {
  double low, high;  // in units of the mean
};

// From the 1st to the 99.9th percentile of the densities above zero; at least a factor of 10.
Range colour_range(const std::vector<float>& density, const ImageOptions& options) {
  if (options.high > 0 && options.low > 0) return {options.low, options.high};
  std::vector<float> values;
  std::copy_if(density.begin(), density.end(), std::back_inserter(values), [](float x) { return x > 0; });
  if (values.empty()) return {options.high > 0 ? options.high / 100 : 0.1, options.high > 0 ? options.high : 10};
  const auto quantile = [&](double share) -> double {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  const double high = options.high > 0 ? options.high : quantile(0.999);
  const double low = options.low > 0 ? options.low : std::min(quantile(0.01), high / 10);
  return {low, options.high > 0 ? high : std::max(high, 10 * low)};
}

void paint(Picture& picture, const std::vector<float>& density, const Range& range) {
  const auto& colours = density_colours();
  const double lowest = std::log(range.low), scale = 1 / (std::log(range.high) - lowest);
  for (std::size_t y = 0; y < picture.height(); ++y) {
    for (std::size_t x = 0; x < picture.width(); ++x) {
      const double value = density[(picture.height() - 1 - y) * picture.width() + x];
      const double t = value > 0 ? std::clamp((std::log(value) - lowest) * scale, 0.0, 1.0) : 0.0;
      picture.at(x, y) = colours[static_cast<std::size_t>(std::lround(255 * t))];
    }
  }
}

// The largest of 1, 2, 5 times a power of ten that is not above x.
double round_down(double x) {
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (const double digit : {5.0, 2.0}) {
    if (digit * power <= x * (1 + 1e-9)) return digit * power;
  }
  return power;
}

void draw_scale_bar(Picture& picture, const ImageOptions& options, long dot) {
  const double length = round_down(options.side / 4);
  const long pixels = std::lround(length / options.side * static_cast<double>(picture.width()));
  const long x = 6 * dot, y = static_cast<long>(picture.height()) - 8 * dot;
  picture.fill(x - 1, y - 1, pixels + 2, 2 * dot + 2, {0, 0, 0});
  picture.fill(x, y, pixels, 2 * dot, kInk);
  picture.text(x, y - 10 * dot, fmt::format("{:g} {}", length, options.length_unit), dot, kInk);
}

std::string short_number(double x) { return x >= 10 && x < 1e4 ? fmt::format("{:.0f}", x) : fmt::format("{:.2g}", x); }

void draw_colour_bar(Picture& picture, const Range& range, long dot) {
  const long width = static_cast<long>(picture.width()) / 4;
  const long x = static_cast<long>(picture.width()) - width - 6 * dot,
             y = static_cast<long>(picture.height()) - 10 * dot;
  picture.fill(x - 1, y - 1, width + 2, 4 * dot + 2, kInk);
  for (long i = 0; i < width; ++i) {
    picture.fill(x + i, y, 1, 4 * dot, density_colours()[static_cast<std::size_t>(255 * i / std::max(1L, width - 1))]);
  }
  const std::string low = short_number(range.low), high = short_number(range.high) + " x mean";
  const long right = x + width - Picture::text_width(high, dot) + dot;
  if (x + Picture::text_width(low, dot) + 4 * dot < right) picture.text(x, y - 10 * dot, low, dot, kInk);
  picture.text(right, y - 10 * dot, high, dot, kInk);
}

using Texts = std::vector<std::pair<std::string, std::string>>;

void append_bytes(png_structp png, png_bytep data, png_size_t bytes) {
  auto* out = static_cast<std::vector<char>*>(png_get_io_ptr(png));
  out->insert(out->end(), reinterpret_cast<char*>(data), reinterpret_cast<char*>(data) + bytes);
}

void keep_message(png_structp png, png_const_charp message) {
  *static_cast<std::string*>(png_get_error_ptr(png)) = message;
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

// libpng reports errors by longjmp, so nothing with a destructor lives in this function. False on failure.
bool encode_png(png_structp png, png_infop info, const Picture& picture, png_text* texts, int count,
                std::vector<char>* out) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_write_fn(png, out, append_bytes, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width()), static_cast<png_uint_32>(picture.height()), 8,
               PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_sRGB_gAMA_and_cHRM(png, info, PNG_sRGB_INTENT_PERCEPTUAL);
  png_set_text(png, info, texts, count);
  png_write_info(png, info);
  for (std::size_t y = 0; y < picture.height(); ++y) png_write_row(png, picture.at(0, y).data());
  png_write_end(png, info);
  return true;
}

std::vector<char> to_png(const Picture& picture, const Texts& texts, const std::string& path) {
  std::string message = "libpng has no memory";
  std::vector<char> out;
  std::vector<png_text> chunks;
  for (const auto& [key, text] : texts) {
    png_text chunk{};
    chunk.compression = PNG_TEXT_COMPRESSION_NONE;
    chunk.key = const_cast<char*>(key.c_str());
    chunk.text = const_cast<char*>(text.c_str());
    chunk.text_length = text.size();
    chunks.push_back(chunk);
  }
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, keep_message, ignore_warning);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  const bool done = info && encode_png(png, info, picture, chunks.data(), static_cast<int>(chunks.size()), &out);
  if (png) png_destroy_write_struct(&png, &info);
  if (!done) throw Error(fmt::format("cannot write '{}'", path), message, "check the size of the image");
  return out;
}

Texts provenance_texts(const Provenance& p, const ImageOptions& options) {
  Texts texts{{"Title", "Projected density " + options.label},
              {"Software", p.version},
              {"Commit", p.git_hash},
              {"Compiler", p.compiler},
              {"Device", p.device},
              {"Configuration", p.configuration}};
  std::erase_if(texts, [](const auto& entry) { return entry.second.empty(); });
  return texts;
}

}  // namespace

void write_image(const std::string& path, const std::vector<float>& density, std::size_t width, std::size_t height,
                 const ImageOptions& options, const Provenance& provenance) {
  if (width == 0 || height == 0 || density.size() != width * height) {
    throw Error(fmt::format("cannot write '{}'", path),
                fmt::format("{} numbers do not fill {} x {} pixels", density.size(), width, height));
  }
  SafeFile file(path, options.overwrite);
  const Range range = colour_range(density, options);
  Picture picture(width, height);
  paint(picture, density, range);
  if (width >= 200 && height >= 100) {
    const long dot = std::max(1L, static_cast<long>(width) / 400);
    if (options.side > 0) draw_scale_bar(picture, options, dot);
    draw_colour_bar(picture, range, dot);
    picture.text(6 * dot, 6 * dot, options.label, 2 * dot, kInk);
  }
  const std::vector<char> png = to_png(picture, provenance_texts(provenance, options), path);
  file.write(png.data(), png.size());
  file.commit();
}

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
