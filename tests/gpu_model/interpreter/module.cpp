#include <cstdlib>
#include <memory>

#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

// Kernels are decoded when they are asked for first: a program has many more than a run needs.
struct Module {
  ptx::ModuleText text;
  mutable std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;  // modules live as long as the program
};

namespace {

// MAKI_GPU_MODEL_WITHOUT=FILE:LINE (the end of a path will do) leaves out the barriers of that line: the model has to
// notice.
void leave_out_barriers(Kernel& k) {
  static const char* const place = std::getenv("MAKI_GPU_MODEL_WITHOUT");
  if (!place || !*place) return;
  for (Instruction& i : k.code) {
    if (!i.barrier || i.to[0] != kNoRow) continue;
    for (int n = i.source; n >= 0; n = k.callers[static_cast<std::size_t>(n)]) {
      const ptx::Line& line = k.lines[static_cast<std::size_t>(n)];
      const auto file = k.files->find(line.file);
      if (file != k.files->end() && (file->second + ":" + std::to_string(line.line)).ends_with(place)) {
        i.run = nothing;
        i.jumps = false;
      }
    }
  }
}

}  // namespace

std::shared_ptr<const Module> load_module(std::string_view text) {
  auto m = std::make_shared<Module>();
  m->text = ptx::parse(text);
  return m;
}

const Kernel* find_kernel(const Module& module, std::string_view name) {
  if (const auto found = module.kernels.find(name); found != module.kernels.end()) return found->second.get();
  for (const auto& text : module.text.kernels)
    if (text.name == name) {
      auto kernel = std::make_unique<Kernel>(decode(text, module.text.dynamic_shared));
      kernel->files = &module.text.files;
      leave_out_barriers(*kernel);
      return (module.kernels[text.name] = std::move(kernel)).get();
    }
  return nullptr;
}

}  // namespace gpu_model
