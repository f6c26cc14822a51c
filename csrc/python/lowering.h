// The lowering of a backward over a live graph, as plain Python data.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// _C.lower(outputs: list[Tensor], inputs: list[Tensor], call_unpack_hooks: bool) -> (roots, steps), where
//   roots is a list of (input, expected), one for each output;
//   steps is a list of (node, operator, kind, num_inputs, hooks, has_unpack_hooks, packed, operations):
//     node: the node's name; operator: the name of its operator or None; kind: "python", "copy_slices" or "cpp" for a
//     node that runs and has none, otherwise None; num_inputs: how many gradients it takes; hooks: kinds in words;
//     has_unpack_hooks: whether a saved tensor has one;
//     packed: (needs_input_grad, *saved), None for all steps where one has hooks or runs without an operator;
//     operations: a list of (name, operand) with the names of plan/lowering.h. The operand is (input_nr, result) of
//     return_grad, a list of what is expected for each edge of validate_grads, (edge, input) of add_to_buffer, None of
//     the others;
//   an input is (step, input_nr), or None where nothing behind it is needed; expected is (sizes, dtype or None, device
//   or None), or None where the gradient is taken as it is.
//
// Without call_unpack_hooks no hook of a saved tensor is called, and the steps that have one are not packed. With it,
// all that can fail without a hook has failed before the first is called.
PyObject* lower(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

// _C.leaves(outputs: list[Tensor]) -> list[Tensor]: the leaves in the order in which the engine would accumulate.
PyObject* leaves_of(PyObject* module, PyObject* outputs);

}  // namespace backbind::python
