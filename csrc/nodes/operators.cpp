#include "nodes/operators.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <memory>
#include <mutex>

#include "nodes/purity.h"
#include "nodes/registry.h"

namespace backbind {

namespace {

variable_list gradients_of(const c10::IValue& value) {
  variable_list grads;
  const auto elements = value.toListRef();
  grads.reserve(elements.size());
  for (const c10::IValue& element : elements) grads.push_back(element.isNone() ? at::Tensor() : element.toTensor());
  return grads;
}

// One kernel class for all operators: the binding says what to run.
class OperatorKernel final : public c10::OperatorKernel {
 public:
  explicit OperatorKernel(const Binding* binding) : binding_(binding) {}

  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const size_t count = binding_->arguments.size() + 1;
    const auto first = stack->end() - static_cast<std::ptrdiff_t>(count);
    const variable_list grads = gradients_of(*(first - 1));
    const ivalue_list arguments(std::make_move_iterator(first), std::make_move_iterator(stack->end()));
    torch::jit::drop(*stack, count + 1);
    torch::jit::push(*stack, c10::List<at::Tensor>(run_pure(*binding_, binding_->apply, grads, arguments)));
  }

 private:
  const Binding* binding_;
};

torch::CppFunction kernel_for(const Binding* binding) {
  return torch::CppFunction::makeFromBoxedKernel(
      c10::BoxedKernel::makeFromFunctor<OperatorKernel>(std::make_unique<OperatorKernel>(binding)));
}

}  // namespace

void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: operators must outlive every thread that may still call them while the process ends.
    auto* library =
        std::make_unique<torch::Library>(torch::Library::DEF, "backbind", std::nullopt, __FILE__, __LINE__).release();
    for (const Binding* binding : all_bindings()) {
      library->def(binding->schema, {at::Tag::pt2_compliant_tag});
      library->impl(binding->name, torch::dispatch(c10::DispatchKey::CompositeImplicitAutograd, kernel_for(binding)));
      library->impl(binding->name,
                    torch::dispatch(c10::DispatchKey::FuncTorchBatchedDecomposition, kernel_for(binding)));
    }
  });
}

}  // namespace backbind
