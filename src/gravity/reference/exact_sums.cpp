#include "src/gravity/reference/exact_sums.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>
#include <complex>

namespace maki {
namespace {

using boost::math::quadrature::gauss;

// ---- pairs ----------------------------------------------------------------------------------------------------------

// The cubic spline's potential is piecewise polynomial in q = r / h; coefficients of q^-1 .. q^5 of p h.
struct SplinePiece {
  double inverse;
  double power[6];
};
constexpr SplinePiece kInner = {0, {14.0 / 5, 0, -16.0 / 3, 0, 48.0 / 5, -32.0 / 5}};
constexpr SplinePiece kOuter = {-1.0 / 15, {16.0 / 5, 0, -32.0 / 3, 16, -48.0 / 5, 32.0 / 15}};

// p and -p'/r.
PairValue spline_pair(double q, double h) {
  const SplinePiece& piece = q < 0.5 ? kInner : kOuter;
  double p = piece.inverse == 0 ? 0 : piece.inverse / q;
  double g = piece.inverse == 0 ? 0 : piece.inverse / (q * q * q);
  double power = 1;  // q^(j - 2), for j >= 2
  p += piece.power[0];
  for (int j = 2; j < 6; ++j, power *= q) {
    p += piece.power[j] * power * q * q;
    g -= j * piece.power[j] * power;
  }
  return {g / (h * h * h), p / h};
}

// ---- Ewald sums -----------------------------------------------------------------------------------------------------

constexpr double kReach = 5.6;  // erfc(5.6) = 2e-15, exp(-5.6^2) = 2e-14
const double kTwoOverRootPi = 2 / std::sqrt(M_PI);

// The smooth part erf(alpha r) / r of the pair, which the wave sum computes, as g and p. Finite at r = 0.
PairValue smooth_pair(double r2, double alpha) {
  const double x2 = alpha * alpha * r2;
  if (x2 < 1e-3) {
    const double a3 = kTwoOverRootPi * alpha * alpha * alpha;
    return {a3 * (2.0 / 3 - x2 * (2.0 / 5 - x2 * (1.0 / 7 - x2 / 27))),
            kTwoOverRootPi * alpha * (1 - x2 * (1.0 / 3 - x2 * (1.0 / 10 - x2 / 42)))};
  }
  const double r = std::sqrt(r2), p = std::erf(alpha * r) / r;
  return {(p - kTwoOverRootPi * alpha * std::exp(-x2)) / r2, p};
}

// Newton's pair minus the smooth part, without cancellation at large r.
PairValue near_pair(double r2, double alpha) {
  const double r = std::sqrt(r2), p = std::erfc(alpha * r) / r;
  return {(p + kTwoOverRootPi * alpha * std::exp(-alpha * alpha * r2)) / r2, p};
}

// One half of the waves, as k and -k contribute equally: kx > 0, or kx = 0 and ky > 0, or both 0 and kz > 0.
struct Waves {
  int most;  // of |kx|, |ky|, |kz|
  std::vector<std::array<int, 3>> k;
  std::vector<double> weight;             // 2 exp(-pi^2 k^2 / alpha^2) / (pi k^2)
  std::vector<std::complex<double>> sum;  // structure factor: sum m exp(-2 pi i k.x)
};

Waves choose_waves(double alpha) {
  Waves waves;
  const double reach = kReach * alpha / M_PI;
  waves.most = static_cast<int>(reach);
  for (int x = 0; x <= waves.most; ++x)
    for (int y = x == 0 ? 0 : -waves.most; y <= waves.most; ++y)
      for (int z = x == 0 && y == 0 ? 1 : -waves.most; z <= waves.most; ++z) {
        const double k2 = x * x + y * y + z * z;
        if (k2 > reach * reach) continue;
        waves.k.push_back({x, y, z});
        waves.weight.push_back(2 * std::exp(-M_PI * M_PI * k2 / (alpha * alpha)) / (M_PI * k2));
      }
  waves.sum.resize(waves.k.size());
  return waves;
}

// exp(-2 pi i k x) on one axis for |k| <= most, of a block of particles: arrays [k + most][particle].
constexpr std::size_t kBlock = 64;

class Phases {
 public:
  explicit Phases(int most) : most_(most), re_(kBlock * (2 * most + 1)), im_(re_.size()) {}

  void set(std::size_t slot, double x) {
    for (int k = -most_; k <= most_; ++k) {
      const double turn = std::remainder(k * x, 1.0);
      re(k)[slot] = std::cos(2 * M_PI * turn);
      im(k)[slot] = -std::sin(2 * M_PI * turn);
    }
  }
  double* re(int k) { return re_.data() + kBlock * (k + most_); }
  double* im(int k) { return im_.data() + kBlock * (k + most_); }

 private:
  int most_;
  std::vector<double> re_, im_;
};

struct PhaseBlock {
  explicit PhaseBlock(int most) : x(most), y(most), z(most) {}
  Phases x, y, z;
  double xy_re[kBlock], xy_im[kBlock];

  // exp(-2 pi i (kx x + ky y)) times `factor` of each particle.
  void join(int kx, int ky, const double* factor) {
    const double *ar = x.re(kx), *ai = x.im(kx), *br = y.re(ky), *bi = y.im(ky);
    for (std::size_t i = 0; i < kBlock; ++i) {
      xy_re[i] = factor[i] * (ar[i] * br[i] - ai[i] * bi[i]);
      xy_im[i] = factor[i] * (ar[i] * bi[i] + ai[i] * br[i]);
    }
  }
};

void add_structure(Waves& waves, const std::vector<Vector3>& positions, const std::vector<double>& masses) {
#pragma omp parallel
  {
    PhaseBlock phases(waves.most);
    std::vector<std::complex<double>> sum(waves.k.size());
    double mass[kBlock];
#pragma omp for schedule(static)
    for (std::size_t begin = 0; begin < positions.size(); begin += kBlock) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        const bool there = begin + i < positions.size();
        const Vector3 at = there ? positions[begin + i] : Vector3{};
        mass[i] = there ? masses[begin + i] : 0;
        phases.x.set(i, at[0]), phases.y.set(i, at[1]), phases.z.set(i, at[2]);
      }
      for (std::size_t w = 0; w < waves.k.size(); ++w) {
        const auto& k = waves.k[w];
        if (w == 0 || k[0] != waves.k[w - 1][0] || k[1] != waves.k[w - 1][1]) phases.join(k[0], k[1], mass);
        const double *zr = phases.z.re(k[2]), *zi = phases.z.im(k[2]);
        double re = 0, im = 0;
#pragma omp simd reduction(+ : re, im)
        for (std::size_t i = 0; i < kBlock; ++i) {
          re += phases.xy_re[i] * zr[i] - phases.xy_im[i] * zi[i];
          im += phases.xy_re[i] * zi[i] + phases.xy_im[i] * zr[i];
        }
        sum[w] += std::complex<double>(re, im);
      }
    }
#pragma omp critical
    for (std::size_t w = 0; w < sum.size(); ++w) waves.sum[w] += sum[w];
  }
}

void add_waves(const Waves& waves, const Vector3& at, PhaseBlock& phases, Vector3& acceleration, double& potential) {
  const double one[kBlock] = {1};
  phases.x.set(0, at[0]), phases.y.set(0, at[1]), phases.z.set(0, at[2]);
  for (std::size_t w = 0; w < waves.k.size(); ++w) {
    const auto& k = waves.k[w];
    if (w == 0 || k[0] != waves.k[w - 1][0] || k[1] != waves.k[w - 1][1]) phases.join(k[0], k[1], one);
    const std::complex<double> z(*phases.z.re(k[2]), *phases.z.im(k[2]));
    // sum m exp(2 pi i k.(x_target - x_source))
    const std::complex<double> xy(phases.xy_re[0], phases.xy_im[0]);
    const std::complex<double> wave = std::conj(xy * z) * waves.sum[w];
    potential -= waves.weight[w] * wave.real();
    const double slope = -2 * M_PI * waves.weight[w] * wave.imag();
    for (int axis = 0; axis < 3; ++axis) acceleration[axis] += slope * k[axis];
  }
}

// The sum at one target.
struct TargetSum {
  Vector3 acceleration{};
  double potential = 0;

  // Adds a pair with mg = m g, and mp = m p, at `d` from the target.
  void add(double mg, const Vector3& d, double mp) {
    for (std::size_t axis = 0; axis < 3; ++axis) acceleration[axis] += mg * d[axis];
    potential -= mp;
  }
};

// sum_at(position) for each target, of all processes' parts.
template <class F>
ReferenceForces sums_at(const std::vector<Vector3>& targets, const SumOfParts& sum, const F& sum_at) {
  ReferenceForces forces{std::vector<Vector3>(targets.size()), std::vector<double>(targets.size())};
#pragma omp parallel for schedule(dynamic, 4)
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const TargetSum at = sum_at(targets[t]);
    forces.acceleration[t] = at.acceleration;
    forces.potential[t] = at.potential;
  }
  sum({reinterpret_cast<double*>(forces.acceleration.data()), 3 * targets.size()});
  sum(forces.potential);
  return forces;
}

// One source's near images. `d` points to the nearest image, on each axis within half a side.
void add_near(const Vector3& d, double mass, const ReferenceOptions& options, int images, TargetSum& force) {
  const double alpha = options.alpha, reach2 = kReach * kReach / (alpha * alpha);
  for (int i = -images; i <= images; ++i)
    for (int j = -images; j <= images; ++j)
      for (int k = -images; k <= images; ++k) {
        const double x = d[0] + i, y = d[1] + j, z = d[2] + k, r2 = x * x + y * y + z * z;
        const bool nearest = i == 0 && j == 0 && k == 0;
        PairValue pair{0, 0};
        if (r2 == 0) {
          pair.p = -smooth_pair(0, alpha).p;  // the target's own term: only its part in the waves is subtracted
        } else if (nearest && options.softening > 0) {
          const PairValue soft = softened_newton(r2, options.kind, options.softening), smooth = smooth_pair(r2, alpha);
          pair = {soft.g - smooth.g, soft.p - smooth.p};
        } else if (r2 < reach2) {
          pair = near_pair(r2, alpha);
        }
        force.add(mass * pair.g, {x, y, z}, mass * pair.p);
      }
}

double wrapped(double d) { return d - std::nearbyint(d); }

// Integral of r - r^2 p from 0 to `end`, p softened.
double integral_along_ray(double end, Softening kind, double softening) {
  if (kind == Softening::kPlummer) {
    const double s2 = softening * softening;
    return 0.5 * s2 * (std::asinh(end / softening) - end / (end + std::hypot(end, softening)));
  }
  const double h = kSplineSupport * softening;
  const auto shell = [&](double r) { return r - r * r * spline_pair(r / h, h).p; };
  const double middle = std::min(end, 0.5 * h), outer = std::min(end, h);  // polynomials of degree 7 on both pieces
  return gauss<double, 7>::integrate(shell, 0.0, middle) +
         (outer > middle ? gauss<double, 7>::integrate(shell, middle, outer) : 0);
}

// Integral over the box of 1/r less the softened p of the nearest image, by six pyramids from the source to the faces.
double softening_integral(const ReferenceOptions& options) {
  if (options.softening <= 0) return 0;
  const auto within = [&](double u, double v) {  // of the ray through (1, u, v) / 2
    const double w = std::sqrt(1 + u * u + v * v);
    return integral_along_ray(0.5 * w, options.kind, options.softening) / (w * w * w);
  };
  const auto row = [&](double u) {
    return gauss<double, 20>::integrate([&](double v) { return within(u, v); }, 0.0, 1.0);
  };
  return 24 * gauss<double, 20>::integrate(row, 0.0, 1.0);
}

}  // namespace

PairValue softened_newton(double r2, Softening kind, double softening) {
  if (kind == Softening::kSpline) {
    const double r = std::sqrt(r2), h = kSplineSupport * softening;
    if (r < h) return spline_pair(r / h, h);
    return {1 / (r2 * r), 1 / r};
  }
  const double s2 = r2 + softening * softening, inverse = 1 / std::sqrt(s2);
  return {inverse / s2, inverse};
}

ReferenceForces direct_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                 const std::vector<Vector3>& targets, const ReferenceOptions& options,
                                 const SumOfParts& sum) {
  return sums_at(targets, sum, [&](const Vector3& at) {
    TargetSum force;
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const double x = positions[j][0] - at[0], y = positions[j][1] - at[1], z = positions[j][2] - at[2];
      const double r2 = x * x + y * y + z * z;
      if (r2 == 0) continue;
      const PairValue pair = softened_newton(r2, options.kind, options.softening);
      force.add(masses[j] * pair.g, {x, y, z}, masses[j] * pair.p);
    }
    return force;
  });
}

ReferenceForces ewald_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                const std::vector<Vector3>& targets, const ReferenceOptions& options,
                                const SumOfParts& sum) {
  Waves waves = choose_waves(options.alpha);
  add_structure(waves, positions, masses);
  sum(std::span(reinterpret_cast<double*>(waves.sum.data()), 2 * waves.sum.size()));
  double total_mass = 0;
  for (const double m : masses) total_mass += m;
  sum({&total_mass, 1});
  // Images on each side of the nearest one that the near sum reaches, and minus the near part's mean (mean Phi = 0).
  const int images = static_cast<int>(std::ceil(std::max(0.0, kReach / options.alpha - 0.5)));
  const double background = total_mass * (M_PI / (options.alpha * options.alpha) - softening_integral(options));
  ReferenceForces forces = sums_at(targets, sum, [&](const Vector3& at) {
    TargetSum force;
    for (std::size_t j = 0; j < positions.size(); ++j) {
      const Vector3& s = positions[j];
      add_near({wrapped(s[0] - at[0]), wrapped(s[1] - at[1]), wrapped(s[2] - at[2])}, masses[j], options, images,
               force);
    }
    return force;
  });
#pragma omp parallel
  {
    PhaseBlock phases(waves.most);
#pragma omp for schedule(dynamic, 4)
    for (std::size_t t = 0; t < targets.size(); ++t) {
      forces.potential[t] += background;
      add_waves(waves, targets[t], phases, forces.acceleration[t], forces.potential[t]);
    }
  }
  return forces;
}

}  // namespace maki
