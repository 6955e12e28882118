// MAKI_EACH_ISA before a function: compiled for several instruction sets, of which the loader takes the best that the
// machine has.
#pragma once

#ifndef MAKI_EACH_ISA
// Not with sanitizers: they are not ready yet when the loader asks.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MAKI_EACH_ISA __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MAKI_EACH_ISA
#endif
#endif
#define MAKI_INLINE inline __attribute__((always_inline))
