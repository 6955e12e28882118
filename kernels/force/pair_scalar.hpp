// A scalar with the operations of the pair formula: for CUDA threads, and in double for tests.
#pragma once

#if !defined(__CUDACC__)
#include <math.h>
#endif

#include "kernels/force/pair_formula.hpp"

namespace maki {

template <class Real>
struct Scalar {
  Real v;
  Scalar() = default;
  MAKI_HD explicit Scalar(Real value) : v(value) {}
};

template <class Real>
MAKI_HD Scalar<Real> operator+(Scalar<Real> a, Scalar<Real> b) {
  return Scalar<Real>(a.v + b.v);
}
template <class Real>
MAKI_HD Scalar<Real> operator-(Scalar<Real> a, Scalar<Real> b) {
  return Scalar<Real>(a.v - b.v);
}
template <class Real>
MAKI_HD Scalar<Real> operator*(Scalar<Real> a, Scalar<Real> b) {
  return Scalar<Real>(a.v * b.v);
}
template <class Real>
MAKI_HD bool less(Scalar<Real> a, Scalar<Real> b) {
  return a.v < b.v;
}
template <class Real>
MAKI_HD Scalar<Real> where(bool mask, Scalar<Real> a, Scalar<Real> b) {
  return mask ? a : b;
}
template <class Real>
MAKI_HD Scalar<Real> zero_unless(bool mask, Scalar<Real> a) {
  return mask ? a : Scalar<Real>(0);
}
template <class Real>
MAKI_HD Scalar<Real> larger(Scalar<Real> a, Scalar<Real> b) {
  return a.v < b.v ? b : a;
}
template <class Real, bool kRefine>
MAKI_HD Scalar<Real> reciprocal_root(Scalar<Real> x, Root<kRefine>) {
#if defined(__CUDA_ARCH__)
  return Scalar<Real>(rsqrt(x.v));  // 2 ulp, with or without the step
#else
  return Scalar<Real>(1 / sqrt(x.v));
#endif
}

}  // namespace maki
