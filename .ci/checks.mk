# Checks beside the tests: layers, style, clang-tidy, fuzzing and sanitizers of the wide-area module.
.PHONY: layer-check format format-check tidy fuzz fuzz-parsers sanitize-wan

layer-check:
	@python3 .ci/layer_check

FORMATTED = $(shell find kernels host wan src tests bench -name '*.[hc]pp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inl' -o -name '*.[hc]')
CLANG_FORMAT ?= clang-format
format:
	@$(CLANG_FORMAT) -i $(FORMATTED)
format-check:
	@bash .ci/format_check $(CLANG_FORMAT) $(FORMATTED)

# What is compiled, as it is compiled, each source once (NAME_isa.cpp for AVX2).
COMPILED  = $(sort $(MAIN) $(LIBRARY) $(TESTS) $(RANK_TESTS) $(WAN_TESTS) $(wildcard tests/wan/mpw/*.cpp) $(TESTBED) $(filter-out $(OTHER_BACKEND),$(BENCHES)))
compile   = $(if $(and $(filter %.cu,$1),$(filter cuda,$(BACKEND))),$(NVCC) $(NVCCFLAGS),$(CXX) $(ALL_CXXFLAGS) $(call own_flags,$(1:_isa.cpp=_avx2.cpp)) $(if $(filter %.cu,$1),-x c++))
in_json   = {"directory": "$(CURDIR)", "file": "$1", "command": "$(subst ",\",$(compile) -c $1)"}
compile_commands.json: $(OBJ)/generated/build_info.hpp FORCE
	$(file >$@,[)$(foreach f,$(COMPILED),$(file >>$@,$(call in_json,$f)$(if $(filter-out $(lastword $(COMPILED)),$f),$(comma))))$(file >>$@,])
	@echo "$@: $(words $(COMPILED)) sources"

CLANG_TIDY ?= clang-tidy
tidy: compile_commands.json
	@$(CLANG_TIDY) -p . --quiet $(or $(FILES),$(error tidy: FILES="..." names the sources))

# The readers of others' bytes, with all of the module; clang only, because libFuzzer is a part of it.
FUZZ_SOURCES := tests/wan/fuzz/fuzz_main.cpp tests/wan/fuzz/parsers.cpp $(WAN)
FUZZ_OBJECTS := $(patsubst %,$(BUILD)/fuzz/%.o,$(FUZZ_SOURCES))
FUZZ_FLAGS   := -std=c++20 -O1 -g1 -I. $(PACKAGE_CFLAGS) $(CPPFLAGS) -fsanitize=address,undefined -fno-sanitize-recover=all
RUNS ?= 1000000
CLANG := $(firstword $(shell command -v clang++ $(foreach v,19 18 17 16 15 14,clang++-$v) 2>/dev/null))
ifneq (,$(CLANG))
fuzz: fuzz-parsers
	@$(MAKE) --no-print-directory sanitize-wan/address,undefined SANITIZE_ARGS='--gtest_filter=*States*'
fuzz-parsers: $(BUILD)/fuzz/parsers
	@bash tests/wan/fuzz/run.sh $< $(RUNS)
$(BUILD)/fuzz/parsers: $(FUZZ_OBJECTS)
	@$(CLANG) $(FUZZ_FLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(WAN_LIBS) $(LDLIBS)
$(BUILD)/fuzz/%.cpp.o: %.cpp
	@mkdir -p $(@D)
	@echo "  clang   $<"
	@$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@
-include $(FUZZ_OBJECTS:.o=.d)
else
fuzz fuzz-parsers:
	@echo "fuzz: libFuzzer comes with clang, and there is no clang++ here: apt-get install clang"; exit 1
endif

# What meets hostile peers, and what their bytes are read by: a part of tests_wan, for CI.
HOSTILE_TESTS := $(filter-out %_test.cpp,$(WAN_TESTS)) \
                 $(filter tests/wan/fuzz/% $(addprefix %/,hostile_test.cpp attacks_test.cpp \
                   wire_test.cpp message_test.cpp admission_test.cpp),$(filter %_test.cpp,$(WAN_TESTS)))
$(BUILD)/tests_hostile: $(call object,$(HOSTILE_TESTS) tests/main.cpp) $(BUILD)/libmaki_wan.a
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(GTEST_LIBS) $(ALL_WAN_LIBS)

# Full* too: the attacks on a listener are what these are for. Each has a build of its own. SANITIZED=tests_hostile: that part.
SANITIZE_WAN := address,undefined thread
SANITIZED ?= tests_wan
SANITIZED_BUILD = $(BUILD)/$(firstword $(subst $(comma), ,$*))
sanitize-wan: $(addprefix sanitize-wan/,$(SANITIZE_WAN))
sanitize-wan/%: FORCE
	@$(MAKE) --no-print-directory BACKEND=cpu SANITIZE=$* BUILD=$(SANITIZED_BUILD) $(SANITIZED_BUILD)/$(SANITIZED)
	@echo "== $(SANITIZED) under -fsanitize=$*"
	@ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=tests/wan/tsan.supp \
	  $(SANITIZED_BUILD)/$(SANITIZED) --gtest_brief=1 $(SANITIZE_ARGS)
