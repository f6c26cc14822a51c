#include "nodes/operators.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>

#include "nodes/registry.h"
#include "nodes/without_autocast.h"
#include "torch_private.h"

namespace backbind {

namespace {

variable_list gradients_of(const c10::IValue& value) {
  variable_list grads;
  const auto elements = value.toListRef();
  grads.reserve(elements.size());
  for (const c10::IValue& element : elements) grads.push_back(element.isNone() ? at::Tensor() : element.toTensor());
  return grads;
}

// Symbolic numbers among the arguments as the numbers that they stand for, which whoever traces then depends on; sizes
// stay as they are. Returns whether there were any.
bool make_numbers_concrete(const Binding& binding, ivalue_list& arguments) {
  bool has_symbols = false;
  for (size_t i = 0; i < binding.arguments.size(); ++i) {
    c10::IValue& argument = arguments[i + 1];
    if (binding.arguments[i].kind.element != ElementKind::kScalar || !argument.isScalar()) continue;
    const at::Scalar number = argument.toScalar();
    if (!number.isSymbolic()) continue;
    if (number.isFloatingPoint()) {
      argument = number.toSymFloat().guard_float(__FILE__, __LINE__);
    } else if (number.isBoolean()) {
      argument = number.toSymBool().guard_bool(__FILE__, __LINE__);
    } else {
      argument = number.toSymInt().guard_int(__FILE__, __LINE__);
    }
    has_symbols = true;
  }
  return has_symbols;
}

// One kernel class for all operators: the binding says what to run.
class DecomposedKernel final : public c10::OperatorKernel {
 public:
  explicit DecomposedKernel(const Binding* binding) : binding_(binding) {}

  void operator()(const c10::OperatorHandle& /*op*/, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
    const size_t count = binding_->arguments.size() + 1;
    const auto first = stack->end() - static_cast<std::ptrdiff_t>(count);
    const variable_list grads = gradients_of(*(first - 1));
    ivalue_list arguments(std::make_move_iterator(first), std::make_move_iterator(stack->end()));
    torch::jit::drop(*stack, count + 1);
    torch::jit::push(*stack, c10::List<at::Tensor>(run(grads, arguments)));
  }

 private:
  // Not every formula can be evaluated with a number that is a symbol: some compare it.
  variable_list run(const variable_list& grads, ivalue_list& arguments) const {
    try {
      return run_without_autocast(*binding_, binding_->apply, grads, arguments);
    } catch (const c10::Error&) {
      if (!make_numbers_concrete(*binding_, arguments)) throw;
    }
    return run_without_autocast(*binding_, binding_->apply, grads, arguments);
  }

  const Binding* binding_;
};

// Whether a result may be undefined: a gradient that nobody needs, or one that is made of nothing.
bool may_give_undefined(const Binding& binding, const torch::jit::Stack& stack) {
  const size_t first = stack.size() - binding.arguments.size() - 2;
  const auto grads = stack[first].toListRef();
  const auto needed = stack[first + 1].toBoolList();
  return std::any_of(grads.begin(), grads.end(), [](const c10::IValue& grad) { return grad.isNone(); }) ||
         std::find(needed.begin(), needed.end(), false) != needed.end();
}

// Stands before torch's Python dispatcher. While a graph is traced before dispatch (torch.export), the operator stays
// whole, and its results come back through Python, which cannot hand over a Tensor[] that holds an undefined one. Such
// a call becomes the ATen calls inside.
class PythonDispatcherKernel final : public c10::OperatorKernel {
 public:
  explicit PythonDispatcherKernel(const Binding* binding) : binding_(binding), decomposed_(binding) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    if (keys.has(c10::DispatchKey::PreDispatch) && may_give_undefined(*binding_, *stack)) {
      decomposed_(op, keys, stack);
    } else {
      torch_private::call_python_dispatcher(op, keys, *stack);
    }
  }

 private:
  const Binding* binding_;
  DecomposedKernel decomposed_;
};

template <class Kernel>
torch::CppFunction kernel_for(const Binding* binding) {
  return torch::CppFunction::makeFromBoxedKernel(
      c10::BoxedKernel::makeFromFunctor<Kernel>(std::make_unique<Kernel>(binding)));
}

// Where the ATen calls inside take an operator's place. Without autograd's keys (in inference mode) Python's comes
// first, and modes would have to hand over undefined results.
constexpr std::array kDecomposedAt{c10::DispatchKey::CompositeImplicitAutograd,
                                   c10::DispatchKey::FuncTorchBatchedDecomposition, c10::DispatchKey::Python};

}  // namespace

void register_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: operators must outlive every thread that may still call them while the process ends.
    auto* library =
        std::make_unique<torch::Library>(torch::Library::DEF, "backbind", std::nullopt, __FILE__, __LINE__).release();
    for (const Binding* binding : all_bindings()) {
      library->def(binding->schema, {at::Tag::pt2_compliant_tag});
      for (const auto key : kDecomposedAt) {
        library->impl(binding->name, torch::dispatch(key, kernel_for<DecomposedKernel>(binding)));
      }
      library->impl(binding->name,
                    torch::dispatch(c10::DispatchKey::PythonDispatcher, kernel_for<PythonDispatcherKernel>(binding)));
    }
  });
}

}  // namespace backbind
