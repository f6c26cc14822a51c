#include "nodes/memory.h"

#include <c10/util/Exception.h>
#include <c10/util/safe_numerics.h>

#include <limits>

namespace backbind {

namespace {

constexpr c10::DispatchKeySet kWithoutMemory = kStandsForAnother | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);

// How many bytes of its storage the tensor reaches; the largest number there is where that is none.
uint64_t bytes_reached(const c10::TensorImpl& tensor) {
  if (tensor.numel() == 0) return 0;
  auto elements = static_cast<uint64_t>(tensor.storage_offset()) + 1;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  bool overflows = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    uint64_t along = 0;
    overflows |= c10::mul_overflows(static_cast<uint64_t>(sizes[i] - 1), static_cast<uint64_t>(strides[i]), &along);
    overflows |= c10::add_overflows(elements, along, &elements);
  }
  uint64_t bytes = 0;
  overflows |= c10::mul_overflows(elements, static_cast<uint64_t>(tensor.itemsize()), &bytes);
  return overflows ? std::numeric_limits<uint64_t>::max() : bytes;
}

void check(const char* node, const char* name, const at::Tensor& tensor) {
  if (!has_memory(tensor)) return;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const auto held = impl.unsafe_storage().sym_nbytes().maybe_as_int();
  if (!held) return;
  const uint64_t reached = bytes_reached(impl);
  TORCH_CHECK_VALUE(reached <= static_cast<uint64_t>(*held), node, ": '", name, "' with sizes ", impl.sizes(),
                    " and strides ", impl.strides(), " reaches ", reached, " bytes into its storage, which holds ",
                    *held, "; its memory was freed or made smaller");
}

}  // namespace

bool has_memory(const at::Tensor& tensor) {
  if (!tensor.defined()) return false;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return impl.key_set().has(c10::DispatchKey::Dense) && !impl.key_set().has_any(kWithoutMemory) && !impl.is_meta() &&
         impl.has_storage() && !impl.has_symbolic_sizes_strides();
}

void check_memory(const Binding& binding, const variable_list& grads, const ivalue_list& arguments) {
  for (const at::Tensor& grad : grads) check(binding.name, "grads", grad);
  for (size_t i = 0; i < binding.arguments.size(); ++i) {
    const Argument& argument = binding.arguments[i];
    const c10::IValue& value = arguments[i + 1];
    if (argument.kind.element != ElementKind::kTensor || value.isNone()) continue;
    if (value.isTensor()) {
      check(binding.name, argument.name, value.toTensor());
      continue;
    }
    for (const c10::IValue& item : value.toListRef()) {
      if (item.isTensor()) check(binding.name, argument.name, item.toTensor());
    }
  }
}

}  // namespace backbind
