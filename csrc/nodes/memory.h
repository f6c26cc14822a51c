// Whether the arguments of a functional backward have the memory that they speak of.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>

#include "nodes/binding.h"

namespace backbind {

// Keys of tensors that stand for another one, which only the dispatcher knows how to reach.
inline constexpr c10::DispatchKeySet kStandsForAnother({c10::DispatchKey::Python, c10::DispatchKey::Functionalize,
                                                        c10::DispatchKey::Batched, c10::DispatchKey::FuncTorchBatched,
                                                        c10::DispatchKey::FuncTorchGradWrapper});

// Whether the tensor's elements lie where its storage, sizes and strides say: it is dense, stands for no other tensor,
// and its sizes are numbers.
bool has_memory(const at::Tensor& tensor);

// Raises ValueError where a dense tensor's storage ends before the last element that its sizes and strides reach, as
// after untyped_storage().resize_(0): kernels do not look, they read what lies behind.
void check_memory(const Binding& binding, const variable_list& grads, const ivalue_list& arguments);

}  // namespace backbind
