# MPI, libraries and tools: searched once by .ci/find_packages, which says how, and remembered in $(OBJ)/packages.mk until one
# of these changes.
FOUND   := $(OBJ)/packages.mk
NAMED   := $(foreach n,FFTW HDF5 PNG ZLIB FMT OPENSSL XXHASH ZSTD CFITSIO CHEALPIX GTEST THRUST TOMLPLUSPLUS CLI11 BOOST RANDOM123 MPI,$n_HOME) MPICC CXX
TOOLS   := $(if $(filter bundle bundle-check,$(MAKECMDGOALS)),patchelf)
ASKED   := $(strip $(foreach n,$(NAMED) PKG_CONFIG_PATH CPATH LIBRARY_PATH,$(if $($n),$n=$($n))) $(TOOLS) $(firstword $(shell cksum < .ci/find_packages)) \
                   $(if $(MPI_HOME)$(MPICC),,$(shell command -v mpicc 2>/dev/null)))
SEARCH   = $(foreach n,$(NAMED),$(if $($n),$n='$($n)')) TOOLS='$(TOOLS)' BACKEND=$(BACKEND) ASKED='$(ASKED)' bash .ci/find_packages
NO_SEARCH := clean deps deps-cuda format format-check layer-check

# Of the flags; objects are made anew where they change.
FLAGS   := $(OBJ)/packages.flags

ifneq (,$(filter-out $(NO_SEARCH),$(or $(MAKECMDGOALS),all)))
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
