// CUDA's vector types, with the sizes and alignments of the language.
#pragma once

#define MAKI_VECTOR2(name, type, alignment)         \
  struct alignas(alignment) name##2 {               \
    type x, y;                                      \
  };                                                \
  inline name##2 make_##name##2(type x, type y) {   \
    return {x, y};                                  \
  }
#define MAKI_VECTOR3(name, type)                          \
  struct name##3 {                                        \
    type x, y, z;                                         \
  };                                                      \
  inline name##3 make_##name##3(type x, type y, type z) { \
    return {x, y, z};                                     \
  }
#define MAKI_VECTOR4(name, type, alignment)                       \
  struct alignas(alignment) name##4 {                             \
    type x, y, z, w;                                              \
  };                                                              \
  inline name##4 make_##name##4(type x, type y, type z, type w) { \
    return {x, y, z, w};                                          \
  }

MAKI_VECTOR2(char, signed char, 2)
MAKI_VECTOR4(char, signed char, 4)
MAKI_VECTOR2(uchar, unsigned char, 2)
MAKI_VECTOR4(uchar, unsigned char, 4)
MAKI_VECTOR2(short, short, 4)
MAKI_VECTOR4(short, short, 8)
MAKI_VECTOR2(ushort, unsigned short, 4)
MAKI_VECTOR4(ushort, unsigned short, 8)
MAKI_VECTOR2(int, int, 8)
MAKI_VECTOR3(int, int)
MAKI_VECTOR4(int, int, 16)
MAKI_VECTOR2(uint, unsigned, 8)
MAKI_VECTOR3(uint, unsigned)
MAKI_VECTOR4(uint, unsigned, 16)
MAKI_VECTOR2(longlong, long long, 16)
MAKI_VECTOR2(ulonglong, unsigned long long, 16)
MAKI_VECTOR2(float, float, 8)
MAKI_VECTOR3(float, float)
MAKI_VECTOR4(float, float, 16)
MAKI_VECTOR2(double, double, 16)
MAKI_VECTOR3(double, double)
MAKI_VECTOR4(double, double, 16)

#undef MAKI_VECTOR2
#undef MAKI_VECTOR3
#undef MAKI_VECTOR4

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
