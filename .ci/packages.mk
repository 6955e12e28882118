# MPI, libraries and tools: searched once by .ci/find_packages, which says how, and remembered in $(OBJ)/packages.mk until one
# of these changes.
FOUND   := $(OBJ)/packages.mk
NAMED   := $(foreach n,FFTW HDF5 PNG ZLIB FMT OPENSSL XXHASH ZSTD CFITSIO CHEALPIX GTEST THRUST TOMLPLUSPLUS CLI11 BOOST RANDOM123 MPI,$n_HOME) MPICC CXX
TOOLS   := $(if $(filter bundle bundle-check,$(MAKECMDGOALS)),patchelf)
# Flags of the user: they are added to ours.
USERS   := CPPFLAGS CXXFLAGS LDFLAGS LDLIBS
ASKED   := $(strip $(foreach n,$(NAMED) $(USERS) PKG_CONFIG_PATH CPATH LIBRARY_PATH,$(if $($n),$n=$($n))) $(TOOLS) $(firstword $(shell cksum < .ci/find_packages)) \
                   $(if $(MPI_HOME)$(MPICC),,$(shell command -v mpicc 2>/dev/null)))
quoted   = '$(subst ','\'',$1)'
SEARCH   = $(foreach n,$(NAMED) $(USERS),$(if $($n),$n=$(call quoted,$($n)))) TOOLS='$(TOOLS)' BACKEND=$(BACKEND) ASKED=$(call quoted,$(ASKED)) bash .ci/find_packages
NO_SEARCH := clean deps deps-cuda format format-check layer-check

# Of the flags; objects are made anew where they change.
FLAGS   := $(OBJ)/packages.flags

ifneq (,$(filter-out $(NO_SEARCH),$(or $(MAKECMDGOALS),all)))
  MACHINE := $(shell uname -m)
  ifneq ($(MACHINE),x86_64)
    $(error this machine is $(MACHINE), and Maki's loops for processors are written for x86-64 (AVX2, AVX-512): build it on an x86-64 machine)
  endif
  -include $(FOUND)
  ifneq ($(FOUND_FOR),$(ASKED))
    SEARCHED := $(shell $(SEARCH) $(FOUND))
    include $(FOUND)
  endif
endif
# Made while the Makefile is read.
$(FOUND) $(FLAGS): ;

ifneq (,$(MISSING))
.PHONY: what-is-missing
$(OBJ)/generated/build_info.hpp: | what-is-missing
what-is-missing:
	@$(SEARCH) --report
endif

# The launcher of an MPI that is not the one on PATH, or has other words: where tests look for it first.
LAUNCHER := $(BUILD)/launcher
$(LAUNCHER): FORCE
	@bash .ci/make_launcher $(BUILD)/mpirun "$(MPIRUN)" "$(OPEN_MPI)"
