# The modelled GPU for the Makefile: DEVICE=model links it in place of the CUDA libraries.
MODEL       := $(filter-out %/listener.cpp tests/gpu_model/tests/%,$(call find_sources,tests/gpu_model))
MODEL_TESTS := $(call find_sources,tests/gpu_model/tests)
# Tests of every build that barriers.sh needs for kernels that have no test of their own in tests/gpu_model/tests.
BARRIER_TESTS := tests/kernels/device/box_copy_test.cpp tests/kernels/force/force_test.cpp \
                 tests/kernels/measure/power_bins_test.cpp tests/kernels/mesh/counter_test.cpp tests/kernels/tree/lists_test.cpp
# Its loops over a warp's lanes become vector instructions of this machine; what they round is as written.
MODEL_FLAGS := -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-openmp -Wno-restrict $(PIC)
# It follows what goes into and out of the program's memory pool.
MODEL_HOOKS := $(addprefix -Wl$(comma)--wrap=,_ZN4maki13pool_allocateEPKcm _ZN4maki12pool_releaseEPv _ZN4maki15pool_set_extentEPvm)

ifdef ON_MODEL
# Parts of it are only called when the program begins and ends: all of it is linked.
ALL_LIBS   := -Wl,--whole-archive $(OBJ)/libgpu_model.a -Wl,--no-whole-archive $(MODEL_HOOKS) $(ALL_LIBS)
TESTS      += tests/gpu_model/listener.cpp
RANK_TESTS += tests/gpu_model/listener.cpp
$(OBJ)/backend: $(OBJ)/libgpu_model.a
endif

$(call object,$(MODEL)): tests/gpu_model/rules.mk
$(OBJ)/libgpu_model.a: $(call object,$(MODEL))
	@rm -f $@ && ar rcs $@ $^

$(BUILD)/tests_gpu_model: $(call object,$(MODEL_TESTS) $(BARRIER_TESTS) tests/gpu_model/listener.cpp tests/main.cpp) $(OBJ)/libmaki.a $(OBJ)/backend
	@echo "  link    $@"
	@$(LINK) -o $@ $(filter %.o %.a,$^) $(GTEST_LIBS) $(ALL_LIBS)

# What an interpreter does in minutes: tests of the model, of kernels and of what ranks exchange, and the program itself.
# `make BACKEND=cuda DEVICE=model test` runs all there are.
SUITES_ON_MODEL := BlockPool BoxCopy CoarseCells Construction DevicePayload DeviceTurn DirectSum Domain* Double* Drift Escapers \
                   EvaluateLists Exchange ExclusiveScan Friends GatheredSetRanks GroupCosts Groups HostMemory InfluenceFunction JoinedSources Kick \
                   LetForest *LineFft* ListKernels LocalEssentialTree Mass* MeasuredPower Migrate Morton OccupiedRun Octree OutsideMasses OverRanks \
                   OwnGroups ParticleMesh Particles PencilFft PencilMesh Projection *RealFft3d* Results Self SampleCost SiteMigration* \
                   SiteTrees* SortByKey StepReductions Walk WholeCells
LONG_ON_MODEL   := SiteTrees.PeriodicForces* SiteTrees.ForcesWithout*
with_colons      = $(subst $() ,:,$(strip $1))
SHORT_ON_MODEL   = $(call with_colons,$(SUITES_ON_MODEL:%=%.*))-Full*:$(call with_colons,$(LONG_ON_MODEL))
# Numbers of ranks, of which each has a GPU; tests. The GPU is the one with the tightest limits (99 KiB of shared memory a block).
tests_on_model   = MAKI_GPU_MODEL=rtx5090 MAKI_GPU_MODEL_DEVICES=3 MAKI_TEST_RANKS="$1" MAKI_TEST_SHARDS=$(JOBS) \
                   bash tests/run_all.sh "$(BUILD)/tests $(BUILD)/tests_ranks" --gtest_brief=1 --gtest_filter='$2'
# Tests of the Python module, on two GPUs; the example is too long.
PYTHON_ON_MODEL  = PYTHON_BESIDE='$(abspath $(BUILD))/python/site' PYTHON_CHOICE='not test_the_example' MAKI_GPU_MODEL=rtx5090 MAKI_GPU_MODEL_DEVICES=2
SEEDS_ON_MODEL  := 2 3 4 5 6 7 8 9 10
.PHONY: test-gpu-model-full run-on-model run-all-on-model
test-gpu-model test-gpu-model-full:
	@$(MAKE) --no-print-directory BACKEND=cuda DEVICE=model $(if $(filter %-full,$@),run-all-on-model,run-on-model)

run-on-model: $(TEST_PROGRAMS) $(BUILD)/maki
	@$(BUILD)/tests_gpu_model --gtest_brief=1 --gtest_filter='-Full*'
	@$(call tests_on_model,2,$(SHORT_ON_MODEL))
	@$(WITH_PYTHON) bash tests/run_all.sh $(PYTHON_TESTS)
	@$(BUILD)/maki run configs/quickstart.toml run.output_directory=$(BUILD)/quickstart initial.particles_per_side=16 \
	  time.end_redshift=30 output.redshifts=30

# An hour or two: all tests, and the short ones in nine other orders of blocks and streams.
run-all-on-model: $(TEST_PROGRAMS) $(BUILD)/maki
	@$(BUILD)/tests_gpu_model --gtest_brief=1
	@$(call tests_on_model,1 2 3,-Full*)
	@for seed in $(SEEDS_ON_MODEL); do echo "== seed $$seed"; \
	   MAKI_GPU_MODEL_SEED=$$seed $(call tests_on_model,3,$(SHORT_ON_MODEL)) || exit 1; done
