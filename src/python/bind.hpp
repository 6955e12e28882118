// Common parts of the Python module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <omp.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/device.hpp"
#include "kernels/error.hpp"
#include "src/config/config.hpp"
#include "src/run/setup.hpp"

namespace maki::python {

namespace nb = nanobind;
using namespace nb::literals;

// Arrays from Python: n numbers, or n x 3; other types or orders are converted.
template <class T>
using Numbers = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vectors = nb::ndarray<const T, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

// What a forked process has lost: in it OpenMP would wait for threads that do not exist, and CUDA does not work.
struct Forks {
  static inline std::atomic<int> at_work = 0;
  static inline std::atomic<bool> had_threads = false, lost_threads = false, lost_device = false;
  static void in_child() {
    lost_threads = had_threads || at_work > 0;
    lost_device = device_was_used();
  }
  // Throws Error where something is lost.
  static void check() {
    if (lost_device)
      throw Error("this process was forked after Maki had used the GPU", "CUDA does not work in such a process",
                  "choose multiprocessing's start method 'spawn'");
    if (lost_threads)
      throw Error("this process was forked after Maki had computed with several threads, or while it computed",
                  "it has none of these threads",
                  "choose multiprocessing's start method 'spawn', or set OMP_NUM_THREADS=1 before Python starts");
  }
};

// Other Python threads run during its lifetime; with a GPU those that compute take turns. Its end restores the number
// of threads, so that the choice of one call does not affect the next. Throws Error in a process that was forked after
// several threads had computed, or after the GPU was used.
class Computing {
 public:
  Computing() {
    Forks::check();
    ++Forks::at_work;
    turn_.emplace();
  }
  ~Computing() {
    if (omp_get_max_threads() > 1) Forks::had_threads = true;
    turn_.reset();
    --Forks::at_work;
    omp_set_num_threads(threads_before_);
  }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

 private:
  nb::gil_scoped_release others_;
  std::optional<DeviceTurn> turn_;
  int threads_before_ = omp_get_max_threads();
};

// A view of a vector's memory as a numpy array, which keeps `owner` alive.
template <class T>
nb::object view(std::vector<T>& values, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, T>(values.data(), {values.size()}, owner));
}
template <class T>
nb::object view(std::vector<std::array<T, 3>>& values, nb::handle owner) {
  return nb::cast(nb::ndarray<nb::numpy, T>(values.data()->data(), {values.size(), 3}, owner));
}

// The view of a member, as a property.
template <class T, class Values>
auto view_of(Values T::*values) {
  return [values](nb::handle_t<T> owner) { return view(nb::cast<T&>(owner).*values, owner); };
}

// Turns a vector into a numpy array of this shape, without a copy.
template <class T, class Element>
nb::object array_of(std::vector<Element> values, std::initializer_list<std::size_t> shape) {
  auto* const kept = new std::vector<Element>(std::move(values));
  nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<Element>*>(vector); });
  return nb::cast(nb::ndarray<nb::numpy, T>(reinterpret_cast<T*>(kept->data()), shape, owner));
}
template <class T>
nb::object array_of(std::vector<T> values) {
  const std::size_t n = values.size();
  return array_of<T>(std::move(values), {n});
}
template <class T>
nb::object array_of(std::vector<std::array<T, 3>> values) {
  const std::size_t n = values.size();
  return array_of<T>(std::move(values), {n, 3});
}

template <class T>
std::vector<std::array<T, 3>> to_vectors(const Vectors<double>& given) {
  std::vector<std::array<T, 3>> values(given.shape(0));
  for (std::size_t i = 0; i < 3 * values.size(); ++i) values[i / 3][i % 3] = static_cast<T>(given.data()[i]);
  return values;
}

// The sections of the module; each adds its classes and functions.
void bind_units(nb::module_& module);
void bind_snapshot(nb::module_& module);
void bind_simulation(nb::module_& module);
void bind_forces(nb::module_& module);
void bind_products(nb::module_& module);
void bind_groups(nb::module_& module);

// Throws Error on all ranks where they have different settings, given as lines. Collective.
void require_same_settings(const std::vector<std::string>& lines);
// Throws Error under several ranks, for what takes a set for the whole one; `what` begins the message.
void require_whole_sets(const std::string& what);
// Checks a set from Python, and wraps positions in a periodic box, as readers do. Adds sentences on repairs to `notes`.
// Collective over `ranks`, each of which gives its share. Throws Error, also where several give the same particles.
Snapshot checked(Snapshot set, std::vector<std::string>& notes, const Communicator& ranks = Communicator::self());
// Sorts the particles by id.
void sort_by_id(Snapshot& set);

}  // namespace maki::python
