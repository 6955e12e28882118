# The Python module, by nanobind: `pip install .` runs `make python` (src/python/build_hook.py). It is linked from the
# program's objects and these.
PYTHON ?= python3
BINDINGS := $(wildcard src/python/*.cpp)
MODULE_OBJECTS := $(call object,$(BINDINGS)) $(OBJ)/src/python/nanobind.o

ifneq (,$(filter python,$(MAKECMDGOALS)))
  # Headers of Python and nanobind, the module's file name, and the versions of interpreter and nanobind.
  PYTHON_FACTS := $(shell '$(PYTHON)' src/python/python_facts.py)
  ifeq (,$(PYTHON_FACTS))
    $(error PYTHON is '$(PYTHON)': it cannot be run, or has no nanobind ('pip install .' brings it) or no headers (Debian: python3-dev))
  endif
  PYTHON_CFLAGS := $(filter -isystem% /%,$(filter-out file=% root=% tag=%,$(PYTHON_FACTS)))
  NANOBIND_ROOT := $(patsubst root=%,%,$(filter root=%,$(PYTHON_FACTS)))
  MODULE := $(BUILD)/python/$(patsubst file=%,%,$(filter file=%,$(PYTHON_FACTS)))
  PYTHON_TAG := $(patsubst tag=%,%,$(filter tag=%,$(PYTHON_FACTS)))
endif

# Its tests, and other tests that read files by Python, in a separate environment; the make that pip starts gets the
# variables of this make. On the modelled GPU they are a few, beside the environment of the other builds.
PYTHON_ENVIRONMENT := $(abspath $(if $(ON_MODEL),build,$(BUILD)))/python/environment
PYTHON_TESTS := tests/python/run
WITH_PYTHON = PYTHON='$(PYTHON)' BACKEND=$(BACKEND) DEVICE=$(DEVICE) BUILD='$(BUILD)' JOBS='$(JOBS)' STRICT=$(STRICT) \
  PYTHON_ENVIRONMENT='$(PYTHON_ENVIRONMENT)' $(if $(ON_MODEL),$(PYTHON_ON_MODEL)) \
  MAKI_MPIRUN="$$(ls '$(abspath $(BUILD))/mpirun' 2>/dev/null)" \
  MAKI_PYTHON="$${MAKI_PYTHON:-$$(PYTHON='$(PYTHON)' bash tests/python/environment '$(PYTHON_ENVIRONMENT)')}"

.PHONY: python
ifneq (,$(if $(DEPS_DONE),,$(MISSING))$(GET_TOOLKIT))
python: $(if $(MISSING),deps) $(GET_TOOLKIT)
	@$(MAKE) --no-print-directory DEPS_DONE=yes $(if $(GET_TOOLKIT),BACKEND=cuda) $@
else
python: $(MODULE)
	@echo "python  $<"
endif

# The library's symbols are hidden, and its calls bind to itself.
ifneq (,$(MODULE))
$(MODULE): $(MODULE_OBJECTS) $(OBJ)/libmaki.a $(OBJ)/backend
	@mkdir -p $(@D)
	@echo "  link    $@"
	@$(LINK) -shared -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -o $@ $(filter %.o %.a,$^) $(ALL_LIBS)
endif

# Recompiled for another interpreter or nanobind.
$(MODULE_OBJECTS): $(OBJ)/python.tag
$(OBJ)/python.tag: $(shell test "$$(cat $(OBJ)/python.tag 2>/dev/null)" = "$(PYTHON_TAG)" || echo FORCE)
	@mkdir -p $(@D) && echo "$(PYTHON_TAG)" > $@
$(OBJ)/src/python/nanobind.o: $(FLAGS)
	@mkdir -p $(@D)
	@echo "  c++     nanobind"
	@$(CCACHE) $(CXX) $(CXXBASE) $(CPPFLAGS) $(CXXFLAGS) $(PIC) -fvisibility=hidden -fno-strict-aliasing -DNDEBUG $(PYTHON_CFLAGS) \
	  -c $(NANOBIND_ROOT)/src/nb_combined.cpp -o $@
