// The operators of a backward graph that belong to no node: what the engine does before the first node and between
// nodes.
#pragma once

namespace backbind {

// Defines them in the dispatcher, once for the process:
//   root_gradient(Tensor? given, Tensor? implicit, SymInt[]? sizes, ScalarType dtype, int output) -> Tensor
//   sum_gradients(Tensor? total, Tensor? gradient) -> Tensor
//   validate_grad(Tensor? gradient, SymInt[] sizes, ScalarType? dtype, Device? device=None) -> Tensor
// What each computes is written in gradients/{root,sum,validate}.h.
void register_gradient_operators();

}  // namespace backbind
