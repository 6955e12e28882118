# Maki: GPU-first gravitational N-body.
#
#   make run        build, then run the main job (configs/quickstart.toml)
#   make test       build and pass the tests
#   make test-full  the long measurements too
#   make bench      print a table of speeds, write JSON to build/bench/
#   make bundle     a directory that runs on another x86-64 Linux machine with nothing installed: build/bundle/
#                   (BUNDLE_WITHOUT="libcufft ..." leaves out libraries that are there already)
#   make wan        the wide-area library alone: build/libmaki_wan.a, and what to link with it    make test-wan  its tests
#   make deps       install what is missing with apt    make deps-cuda   get a CUDA toolkit without root
#   make python     the Python module for PYTHON=python3, as `pip install .` has it made (docs/python.md)    make test-python  its tests
#   make install    PREFIX=/usr/local: maki, the wide-area library with its headers, configurations, pages; DESTDIR for packagers
#   make cuda-check compile and link everything with nvcc for all architectures, and see the binary refuse a machine without a GPU
#   make fuzz       the parsers of the wide-area module under clang's libFuzzer, RUNS=1000000 inputs each; then its protocols
#                   against hostile peers under sanitizers, a million frames and a million messages of copies
#   make test-gpu-model  the tests of the CUDA build on a modelled GPU (tests/gpu_model), without those that take minutes
#                   there; test-gpu-model-full  all of them
#   make sanitize-wan   the tests of the wide-area module under address, undefined-behaviour and thread sanitizers
#   make docs       docs/configuration.toml from the table of keys
#   make layer-check    who includes whom (docs/design.md)    make format, format-check    the style, by clang-format
#   make compile_commands.json    for editors and clang-tidy    make tidy FILES="..."    clang-tidy over these
#   make sass-check read the compiled kernels: no local memory for any architecture, issue slots of the inner loops (BACKEND=cuda)
#
#   BACKEND=auto|cuda|cpu   auto takes CUDA where a usable GPU is, and gets nvcc where that is missing; else the CPU
#   CUDA_ARCHS="90 120"     for these; default: the GPU of this machine, else (and in a bundle) all that are supported
#   DEVICE=model            what was made with BACKEND=cuda is linked with a modelled GPU: tests/gpu_model/README.md
#   NCCL=yes|no             exchange between GPUs by NCCL (default: where its header and library are found; NCCL_HOME)
#   CONFIG=configs/x.toml   what `make run` runs        ARGS="key=value ..."   passed on to it
#   JOBS=n                  parallel compilations (default: all cores)
#   MPI_HOME=/prefix, MPICC=mpicc.mpich, HDF5_HOME=, FFTW_HOME=, OPENSSL_HOME= ...   libraries elsewhere: .ci/packages.mk

BACKEND ?= auto
DEVICE  ?= gpu
BUILD   ?= $(if $(filter model,$(DEVICE)),build/gpu-model,build)
CONFIG  ?= configs/quickstart.toml
ARGS    ?=
JOBS    ?= $(shell nproc)
comma   := ,
VERSION := 0.1.0

# Beside other goals, clean comes before anything is read or made, once. With -n it is only said.
ifneq (,$(and $(filter clean,$(MAKECMDGOALS)),$(filter-out clean,$(MAKECMDGOALS))))
ifeq (,$(findstring n,$(firstword -$(MAKEFLAGS))))
  CLEANED := $(if $(MAKE_RESTARTS),,$(shell rm -rf $(BUILD)))yes
endif
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
ifeq (,$(filter -j%,$(MAKEFLAGS)))
MAKEFLAGS += -j$(JOBS)
endif

# ---- CUDA -----------------------------------------------------------------------------------------------------------
CUDA_WHEELS := $(abspath build/cuda-toolkit)
NVCC := $(firstword $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc)) $(shell command -v nvcc 2>/dev/null) \
                    $(wildcard /usr/local/cuda/bin/nvcc) $(wildcard $(CUDA_WHEELS)/bin/nvcc))
ifeq ($(BACKEND),auto)
  override BACKEND := $(shell bash .ci/choose_backend $(NVCC))
endif
ifeq ($(BACKEND),toolkit)
  GET_TOOLKIT := deps-cuda
  override BACKEND := cuda
endif
ifeq (,$(filter cuda cpu,$(BACKEND)))
  $(error BACKEND is '$(BACKEND)': use auto, cuda or cpu)
endif
OBJ := $(BUILD)/$(BACKEND)
ON_MODEL := $(and $(filter model,$(DEVICE)),$(filter cuda,$(BACKEND)))
# Warnings are errors where STRICT is set, as it is in .ci/run: another compiler may warn of what ours does not.
STRICT ?=
# make SANITIZE=address,undefined BUILD=build/asan build/asan/tests_wan (or thread): the wide-area module under a sanitizer.
SANITIZE ?=

include .ci/packages.mk

# ---- compilers and flags --------------------------------------------------------------------------------------------
CCACHE   := $(if $(findstring ccache,$(CXX)),,$(shell command -v ccache 2>/dev/null))
CXXBASE  := -std=c++20 -O3 -g1 -fopenmp -I. -I$(OBJ)/generated
CXXBASE  += $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -O1)
# g++ 12 sees an overflow in fmt's own header that is not there.
WARNINGS := -Wall -Wextra $(if $(STRICT),-Werror) -Wno-stringop-overflow
# Constants of the command line that tests and messages use.
DEFINES  := -DMAKI_OBJECT_DIR='"$(abspath $(OBJ))"' -DMAKI_BINARY='"$(abspath $(BUILD))/maki"' -DMAKI_SOURCE_DIR='"$(CURDIR)"'
# wan/net stands alone: a library of its own needs no more than these.
WAN_LIBS := $(WAN_PACKAGE_LIBS) -lpthread
# g++ 13 and 14 see a dangling reference where a row of a table is returned.
ALL_CXXFLAGS := $(CXXBASE) $(WARNINGS) -Wno-dangling-reference $(PACKAGE_CFLAGS)
# MPI's C functions are all that is used; only host/ sees its header.
MPI      := -DOMPI_SKIP_MPICXX=1 -DMPICH_SKIP_MPICXX=1 $(MPI_CFLAGS)
ALL_LIBS := $(PACKAGE_LIBS) $(MPI_LIBS) -lpthread
# Units for one instruction set, chosen at run time (docs/design.md, "One source, two backends"): a NAME_isa.cpp is
# compiled once for each as NAME_avx2.cpp.o ... in a namespace of its name. The walk has none with AVX-512.
ISAS       := avx512 avx2 scalar
each_isa    = $(foreach s,$1,$(if $(filter %_isa.cpp,$s),$(foreach i,$(filter-out $(if $(filter %/walk_group_isa.cpp,$s),avx512),$(ISAS)),$(s:_isa.cpp=_$i.cpp)),$s))
ISA_avx512 := -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mprefer-vector-width=512
ISA_avx2   := -mavx2 -mfma
ISA_scalar := -Wno-psabi
# Sums may be taken in any order, but a walk decides alike everywhere: each of its roundings is as written.
isa_maths   = $(if $(filter kernels/tree/walk_%,$1),-ffp-contract=off,-ffast-math)
isa_flags   = $(if $(findstring kernels/,$1),$(foreach i,$(ISAS),$(if $(filter %_$i.cpp,$1),-DMAKI_INSTRUCTION_SET=$i $(ISA_$i) $(isa_maths))))

# Of objects that the Python module is linked from too. Calls within a file are inlined as in a program.
PIC := -fPIC -fno-semantic-interposition
in_module = $(filter kernels/% host/% wan/% src/%,$1)

# Tests compile a third faster with -O1, and what they test comes from the library; the modelled GPU is what its tests wait for.
of_tests  = $(DEFINES) $(if $(filter-out tests/gpu_model/%,$1),-O1)

# What a file gets besides: position-independent code, the constants for tests, MPI, its instruction set, the modelled GPU.
own_flags = $(if $(in_module),$(PIC)) $(if $(filter tests/%,$1),$(of_tests)) $(if $(filter tests/gpu_model/%,$1),$(MODEL_FLAGS)) $(if $(filter tests/wan/mpw/%,$1),-Iwan/net) $(if $(filter host/%,$1),$(MPI)) $(if $(filter src/python/%,$1),-fvisibility=hidden $(PYTHON_CFLAGS)) $(isa_flags)

# In a bundle the libraries lie in lib/, beside the programs' bin/; an old-style path, so that it serves their libraries too.
RPATH    := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib'
ALL_LIBS += $(RPATH)
ALL_WAN_LIBS := $(WAN_LIBS) $(RPATH) $(LDLIBS)

ifeq ($(BACKEND),cuda)
  ifeq (,$(NVCC)$(GET_TOOLKIT))
    $(error BACKEND=cuda needs nvcc: put it on PATH, set CUDA_HOME, or run 'make deps-cuda')
  endif
  CUDA_RELEASE := $(if $(NVCC),$(shell $(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'))
  ifneq (,$(filter 7.% 8.% 9.% 10.% 11.% 12.0 12.1 12.2 12.3,$(CUDA_RELEASE)))
    $(error $(NVCC) is of CUDA $(CUDA_RELEASE), and Maki needs 12.4 or newer (C++20): load another module, set CUDA_HOME, or run 'make deps-cuda')
  endif
  # nvcc may be a script of a module or of the HPC SDK: it names the toolkit behind it as TOP. A distribution's has none there.
  CUDA_PLACE := $(if $(NVCC),$(abspath $(dir $(shell readlink -f $(NVCC)))/..))
  CUDA_TOP  := $(if $(NVCC),$(abspath $(shell $(NVCC) --dryrun -c -x cu /dev/null 2>&1 | sed -n 's/^.. TOP=//p')))
  CUDA_ROOT := $(firstword $(foreach r,$(CUDA_PLACE) $(CUDA_TOP),$(if $(wildcard $r/include/cuda_runtime.h),$r)) $(CUDA_PLACE))
  CUDA_LIB  := $(firstword $(wildcard $(CUDA_ROOT)/lib64 $(CUDA_ROOT)/lib))
  # The HPC SDK has cuFFT beside its toolkits.
  CUFFT_HOME ?= $(if $(wildcard $(CUDA_ROOT)/include/cufft.h),,$(wildcard $(abspath $(CUDA_ROOT)/../../math_libs/$(CUDA_RELEASE))))
  CUFFT_LIB := $(if $(CUFFT_HOME),$(firstword $(wildcard $(CUFFT_HOME)/lib64 $(CUFFT_HOME)/lib)))
  CUDA_KNOWN := $(if $(NVCC),$(shell $(NVCC) --list-gpu-arch 2>/dev/null | sed 's/compute_//'))
  # A release is a fat binary with PTX for what comes later; an older toolkit gets the subset that it knows. What is made to
  # be used here, on a machine with GPUs, is for those alone of them that are new enough.
  CUDA_LIST := $(filter $(CUDA_KNOWN),80 90 100 120)
  CUDA_HERE := $(filter-out 5% 6% 7%,$(filter $(CUDA_KNOWN),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d .)))
  CUDA_ARCHS ?= $(if $(filter bundle bundle-check sass-check,$(MAKECMDGOALS)),all,$(or $(sort $(CUDA_HERE)),all))
  override CUDA_ARCHS := $(if $(filter all,$(CUDA_ARCHS)),$(CUDA_LIST),$(CUDA_ARCHS))
  # A modelled GPU runs PTX and nothing else.
  CODE := $(if $(ON_MODEL),90,$(CUDA_ARCHS))
  GENCODE := $(if $(ON_MODEL),,$(foreach a,$(CODE),-gencode arch=compute_$(a),code=sm_$(a))) \
             -gencode arch=compute_$(lastword $(CODE)),code=compute_$(lastword $(CODE))
  # nvcc takes the g++ that CXX names, as the rest does: a toolkit refuses a g++ much newer than itself.
  HOST_GXX := $(if $(filter default,$(origin CXX))$(NVCC_CCBIN)$(NVCC_PREPEND_FLAGS),,$(firstword $(foreach w,$(CXX),$(if $(findstring g++,$(subst clang++,,$(notdir $w))),$w))))
  NVCCFLAGS := $(HOST_GXX:%=-ccbin %) -std=c++20 -O3 -lineinfo -ftz=true $(GENCODE) -I. -I$(OBJ)/generated $(if $(STRICT),-Werror all-warnings) \
               -Xcompiler -fopenmp,-Wall,-Wextra,-fPIC,-fno-semantic-interposition -diag-suppress 186 -t 2
  # A toolkit or NCCL of the distribution lies where compilers look anyway; named, it hides the C++ library's own headers.
  isystem = $(addprefix -isystem ,$(filter-out /usr/include /usr/local/include,$(patsubst %/,%,$1)))
  ALL_CXXFLAGS += $(call isystem,$(CUDA_ROOT)/include) -DMAKI_BACKEND_CUDA=1
  # Random123 without the compiler's headers of x86 instructions: nvcc 12.4 does not know all that g++ 13 has there.
  NVCCFLAGS += -DMAKI_BACKEND_CUDA=1 -DR123_USE_SSE=0 -DR123_USE_X86INTRIN_H=0
  # Before the toolkit's own, which has a cuFFT too where CUFFT_HOME is the user's.
  NVCCFLAGS += $(CUFFT_HOME:%=-I%/include)
  ALL_LIBS += $(if $(ON_MODEL),,$(foreach f,$(CUFFT_LIB) $(CUDA_LIB),-L$f -Wl$(comma)-rpath$(comma)$f) -lcudart_static -lcufft) -lrt -ldl
  # NCCL: of NCCL_HOME, of the toolkit (deps-cuda brings it), or the system's libnccl-dev. Without it, or with NCCL=no,
  # ranks exchange by MPI; `maki --version` and a run's first lines say so.
  NCCL_ROOTS  := $(NCCL_HOME) $(CUDA_ROOT) /usr /usr/local
  NCCL_HEADER := $(firstword $(wildcard $(NCCL_ROOTS:%=%/include/nccl.h)))
  NCCL_LIB    := $(firstword $(wildcard $(foreach r,$(NCCL_ROOTS),$r/lib64/libnccl.so $r/lib/libnccl.so $r/lib/x86_64-linux-gnu/libnccl.so)))
  NCCL ?= $(if $(and $(NCCL_HEADER),$(NCCL_LIB)),yes,no)
  ifeq ($(NCCL),yes)
    NVCCFLAGS += -DMAKI_NCCL=1 $(call isystem,$(filter-out $(CUDA_ROOT)/include/,$(dir $(NCCL_HEADER))))
    NCCL_FOLDER := $(patsubst %/,%,$(dir $(NCCL_LIB)))
    ALL_LIBS += $(if $(ON_MODEL),,-L$(NCCL_FOLDER) -Wl$(comma)-rpath$(comma)$(NCCL_FOLDER) -lnccl)
  endif
else
  ALL_CXXFLAGS += -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_OMP
endif

# CPPFLAGS, CXXFLAGS, LDFLAGS and LDLIBS are the user's, from the command line or the environment, and come after ours.
ALL_CXXFLAGS += $(CPPFLAGS) $(CXXFLAGS)
ALL_LIBS     += $(LDLIBS)
LINK         := $(CXX) $(CXXBASE) $(CXXFLAGS) $(LDFLAGS)

# ---- sources --------------------------------------------------------------------------------------------------------
find_sources = $(sort $(shell find $1 \( -name '*.cpp' -o -name '*.cu' \) 2>/dev/null))
OTHER_BACKEND := $(if $(filter cuda,$(BACKEND)),%_cpu.cpp,%_cuda.cu)
MAIN    := src/main.cpp
LIBRARY := $(filter-out $(MAIN) src/python/% $(OTHER_BACKEND),$(call find_sources,kernels host wan src))
TESTS   := $(filter-out $(OTHER_BACKEND) tests/gpu_model/% tests/testbed/% tests/wan/% %_ranks_test.cpp %_ranks.cpp,$(call find_sources,tests))
# Tests that need ranks, and what they share (*_ranks.cpp, with main_ranks.cpp): run under mpirun by tests/run_all.sh.
RANK_TESTS := $(filter %_ranks_test.cpp %_ranks.cpp,$(call find_sources,tests))
# The wide-area module, its tests and the emulated links that they run over (tests/testbed, a program too).
WAN       := $(call find_sources,wan/net)
TESTBED   := $(call find_sources,tests/testbed)
WAN_TESTS := $(filter-out tests/wan/mpw/% tests/wan/fuzz/fuzz_main.cpp,$(call find_sources,tests/wan))
# Programs as users of MPWide write them, one for each file, which tests_wan starts.
MPW_PROGRAMS := $(patsubst tests/wan/mpw/%,$(BUILD)/wan_%,$(basename $(wildcard tests/wan/mpw/*.cpp tests/wan/mpw/*.c)))
BENCHES := $(call find_sources,bench)
object   = $(patsubst %,$(OBJ)/%.o,$(each_isa))
TEST_PROGRAMS  := $(BUILD)/tests $(BUILD)/tests_$(if $(ON_MODEL),gpu_model,wan) $(BUILD)/tests_ranks
# Each bench/bench_*.cpp is a program; what else is there goes into all of them.
BENCH_PROGRAMS := $(patsubst bench/%.cpp,$(BUILD)/%,$(filter bench/bench_%.cpp,$(BENCHES)))
BENCH_PARTS    := $(filter-out bench/bench_% $(OTHER_BACKEND),$(BENCHES))

include tests/gpu_model/rules.mk
include src/python/rules.mk

.PHONY: FORCE all benches run test test-full test-python test-gpu-model docs test-wan wan bench bundle bundle-check deps deps-cuda cuda-check sass-check install clean
all: $(BUILD)/maki
benches: $(BENCH_PROGRAMS)

# make run and make test do everything on a fresh machine: the packages first, then themselves again with them.
ifneq (,$(if $(DEPS_DONE),,$(MISSING))$(GET_TOOLKIT))
test-gpu-model test-gpu-model-full: $(if $(MISSING),deps) $(GET_TOOLKIT)
run test test-full test-python test-wan wan bench bundle bundle-check: $(if $(MISSING),deps) $(GET_TOOLKIT)
	@$(MAKE) --no-print-directory DEPS_DONE=yes $(if $(GET_TOOLKIT),BACKEND=cuda) $@
else
run: $(BUILD)/maki
	$(BUILD)/maki run $(CONFIG) $(ARGS)

docs: $(BUILD)/maki
	@$(BUILD)/maki config > $(BUILD)/configuration.toml && mv $(BUILD)/configuration.toml docs/configuration.toml

test-full: export MAKI_TEST_RANKS ?= 1 2 3 4 7 8

# The last line reads "N passed, N failed" (", N skipped" may follow).
test: $(TEST_PROGRAMS) $(BUILD)/maki
	@$(WITH_PYTHON) bash tests/run_all.sh "$(TEST_PROGRAMS) $(PYTHON_TESTS)" --gtest_brief=1 --gtest_filter='-Full*'

test-full: $(TEST_PROGRAMS) $(BUILD)/maki
	@$(if $(and $(NVCC),$(filter cpu,$(BACKEND))),$(MAKE) --no-print-directory test-gpu-model-full)
	@$(WITH_PYTHON) bash tests/run_all.sh "$(TEST_PROGRAMS) $(PYTHON_TESTS)" --gtest_brief=1

test-python:
	@$(WITH_PYTHON) bash tests/run_all.sh "$(PYTHON_TESTS)"

test-wan: $(BUILD)/tests_wan
	@bash tests/run_all.sh "$<" --gtest_brief=1 --gtest_filter='-Full*'

wan: $(BUILD)/libmaki_wan.a
	@echo "A program that includes \"wan/net/path.hpp\", or \"mpw.h\", is compiled with:"
	@echo "  g++ -std=c++20 -I$(CURDIR) -I$(CURDIR)/wan/net program.cpp $(abspath $<) $(WAN_LIBS)"

bench: $(BENCH_PROGRAMS) $(BUILD)/maki
	@mkdir -p $(BUILD)/bench
	@for b in $(BENCH_PROGRAMS); do echo; echo "== $$(basename $$b)"; $$b --json $(BUILD)/bench/$$(basename $$b).json || exit 1; done

BUNDLE := $(BUILD)/bundle/maki-$(VERSION)-$(BACKEND)
bundle: $(BUILD)/maki $(TEST_PROGRAMS) $(MPW_PROGRAMS) $(BENCH_PROGRAMS)
	@mkdir -p $(dir $(BUNDLE)) && CUDA_LIB=$(CUDA_LIB) BUNDLE_WITHOUT="$(BUNDLE_WITHOUT)" bash .ci/make_bundle $(BUNDLE) $^

bundle: $(BUILD)/wan_testbed

# Quickstart from the bundle where nothing but glibc is (as root): ARGS="time.end_redshift=10" makes it short.
bundle-check: bundle
	@bash .ci/bundle_check $(BUNDLE) $(ARGS)
endif

# ---- rules ----------------------------------------------------------------------------------------------------------
$(OBJ)/libmaki.a: $(call object,$(LIBRARY)) $(OBJ)/backend
	@rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(BUILD)/libmaki_wan.a: $(call object,$(WAN)) $(OBJ)/backend
	@rm -f $@ && ar rcs $@ $(filter %.o,$^)

$(BUILD)/tests_wan: $(call object,$(WAN_TESTS) $(filter-out %/main.cpp,$(TESTBED)) tests/main.cpp) $(BUILD)/libmaki_wan.a | $(MPW_PROGRAMS)
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(GTEST_LIBS) $(ALL_WAN_LIBS)

# Named here, their objects are kept.
$(call object,$(wildcard tests/wan/mpw/*.c*)):
$(BUILD)/wan_%: $(OBJ)/tests/wan/mpw/%.cpp.o $(BUILD)/libmaki_wan.a
	@echo "  link    $@"
	@$(LINK) -o $@ $^ $(ALL_WAN_LIBS)

# By the C compiler, which has to be told of C++'s library.
$(BUILD)/wan_%: $(OBJ)/tests/wan/mpw/%.c.o $(BUILD)/libmaki_wan.a
	@echo "  link    $@"
	@$(CC) $(LDFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) -o $@ $^ $(ALL_WAN_LIBS) -lstdc++ -lm

$(BUILD)/wan_testbed: $(call object,$(TESTBED)) $(BUILD)/libmaki_wan.a
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(ALL_WAN_LIBS)

$(BUILD)/maki: $(call object,$(MAIN)) $(OBJ)/libmaki.a $(OBJ)/backend
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(ALL_LIBS)

# Some tests run the program.
$(BUILD)/tests: $(call object,$(TESTS) $(filter-out %/main.cpp,$(TESTBED))) $(OBJ)/libmaki.a $(OBJ)/backend | $(LAUNCHER) $(BUILD)/maki
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(GTEST_LIBS) $(ALL_LIBS)

$(BUILD)/tests_ranks: $(call object,$(RANK_TESTS)) $(OBJ)/libmaki.a $(OBJ)/backend | $(LAUNCHER)
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(GTEST_LIBS) $(ALL_LIBS)

$(BENCH_PROGRAMS): $(BUILD)/%: $(OBJ)/bench/%.cpp.o $(call object,$(BENCH_PARTS)) $(OBJ)/libmaki.a $(OBJ)/backend | $(LAUNCHER)
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(ALL_LIBS)

# PREFIX/bin, lib, include/maki, share/maki/configs, share/doc/maki.
PREFIX ?= /usr/local
install: $(BUILD)/maki $(BUILD)/libmaki_wan.a
	@WAN_LIBS="$(WAN_LIBS)" VERSION=$(VERSION) bash .ci/install $(BUILD) "$(PREFIX)" "$(DESTDIR)"

# $1: the ending of the source in place of that of the object, $2.
define cpp_rule
$(OBJ)/%$2.o: %$1 $(OBJ)/generated/build_info.hpp $(FLAGS) Makefile
	@mkdir -p $$(@D)
	@echo "  c++     $$*$2"
	@$$(CCACHE) $$(CXX) $$(ALL_CXXFLAGS) $$(call own_flags,$$*$2) -MMD -MP -c $$< -o $$@
endef
$(eval $(call cpp_rule,.cpp,.cpp))
$(foreach i,$(ISAS),$(eval $(call cpp_rule,_isa.cpp,_$i.cpp)))
# An object made before its source had another name asks for the old one.
%.cpp: ;

$(OBJ)/%.c.o: %.c $(OBJ)/generated/build_info.hpp $(FLAGS) Makefile
	@mkdir -p $(@D)
	@echo "  cc      $<"
	@$(CC) -std=c99 -pedantic -O2 -g1 $(WARNINGS) $(CPPFLAGS) $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(call own_flags,$<) -MMD -MP -c $< -o $@

ifeq ($(BACKEND),cuda)
$(OBJ)/%.cu.o: %.cu $(OBJ)/generated/build_info.hpp $(OBJ)/archs Makefile
	@mkdir -p $(@D)
	@echo "  nvcc    $<"
	@$(or $(NVCC),$(error there is a GPU and no nvcc: 'make deps-cuda' gets one, BACKEND=cpu goes without)) $(NVCCFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
else
$(OBJ)/%.cu.o: %.cu $(OBJ)/generated/build_info.hpp $(FLAGS) Makefile
	@mkdir -p $(@D)
	@echo "  c++     $<"
	@$(CCACHE) $(CXX) $(ALL_CXXFLAGS) $(call own_flags,$<) -MMD -MP -x c++ -c $< -o $@
endif

# Relinks when the program in $(BUILD) was made for the other backend, or with NCCL and not without it.
LINKED := $(BACKEND)$(if $(filter yes,$(NCCL)), with NCCL)$(if $(ON_MODEL), on the model)
$(OBJ)/backend: $(shell test "$$(cat $(BUILD)/backend 2>/dev/null)" = "$(LINKED)" || echo FORCE)
	@mkdir -p $(@D) && echo "$(LINKED)" > $(BUILD)/backend && touch $@

# Compiles anew for other architectures; NCCL's source with NCCL or without.
$(OBJ)/host/comm/nccl.cu.o: $(OBJ)/nccl
archs_now := $(CUDA_ARCHS)
nccl_now  := $(or $(NCCL),no)
$(OBJ)/archs $(OBJ)/nccl: $(OBJ)/%: FORCE
	@mkdir -p $(@D) && { test "$$(cat $@ 2>/dev/null)" = "$($*_now)" || echo "$($*_now)" > $@; }

# Version and commit, in two headers that change only when they do. All compilation waits for the first, and so for both.
# The commit is of a repository whose top is here, not of one that an unpacked archive lies in.
$(OBJ)/generated/build_info.hpp: FORCE | $(OBJ)/generated/git_hash.hpp
	@mkdir -p $(@D)
	@{ echo '// Made by the Makefile.'; echo '#pragma once'; \
	   echo '#define MAKI_VERSION "$(VERSION)"'; \
	   echo "#define MAKI_BUILD_BACKEND \"$(BACKEND)\""; } > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(OBJ)/generated/git_hash.hpp: FORCE
	@mkdir -p $(@D)
	@h=unknown; if p=$$(git rev-parse --show-prefix 2>/dev/null) && [ -z "$$p" ] && c=$$(git rev-parse --short=12 HEAD 2>/dev/null); \
	  then git diff --quiet HEAD && h=$$c || h=$$c-changed; fi; \
	  printf '#pragma once\n#define MAKI_GIT_HASH "%s"\n' "$$h" > $(@D)/git_hash.hpp.new; \
	  cmp -s $(@D)/git_hash.hpp.new $(@D)/git_hash.hpp && rm $(@D)/git_hash.hpp.new || mv $(@D)/git_hash.hpp.new $(@D)/git_hash.hpp
FORCE:

deps:
	@$(SEARCH) --install

# NVIDIA's Python wheels hold nvcc and the libraries; no root, nothing outside build/.
# cuFFT opens nvJitLink and nvrtc when it runs.
CUDA_WHEEL_NAMES := nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cufft \
                    nvidia-nvjitlink nvidia-cuda-nvrtc nvidia-nvtx nvidia-nccl-cu13
deps-cuda:
	@bash .ci/cuda_toolkit $(CUDA_WHEELS) $(CUDA_WHEEL_NAMES)

cuda-check:
	@bash .ci/cuda_check

# The sources named here are those that .ci/sass_check looks for.
SASS_CHECKED := $(addprefix kernels/,force/evaluate_cuda.cu tree/walk_cuda.cu mesh/assign_cuda.cu \
                                     mesh/interpolate_cuda.cu)
ifeq ($(BACKEND),cuda)
sass-check: $(call object,$(SASS_CHECKED))
	@python3 .ci/sass_check $(SASS_CHECK_FLAGS) $(OBJ)
else
sass-check:
	@echo "sass-check: this is the CPU build; use 'make BACKEND=cuda sass-check'"; exit 1
endif

include .ci/checks.mk

clean:
	$(if $(CLEANED),@echo) rm -rf $(BUILD)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
