// The walk over a live graph, as plain Python data.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// _C.walk(outputs: list[Tensor], inputs: list[Tensor], call_unpack_hooks: bool) -> (steps, outputs, gradients), where
//   steps is a list of (node, operator, kind, incoming, runs, hooks, has_unpack_hooks, packed, targets):
//     node: the node's name; operator: the name of its operator or None; kind: "python", "copy_slices" or "cpp" for a
//     node that runs and has none, otherwise None; incoming: how many gradients it takes; runs: whether the node runs;
//     hooks: kinds in words; has_unpack_hooks: whether a saved tensor has one;
//     packed: (needs_input_grad, *saved), None for all steps where one has hooks or runs without an operator;
//     targets: for each gradient an arrival, None where it is not needed
//   outputs is a list of arrivals or None, gradients a list of (step, input) or None;
//   an arrival is (step, input, expected), expected is (sizes, dtype or None, device or None) or None.
//
// Without call_unpack_hooks no hook of a saved tensor is called, and the steps that have one are not packed. With it,
// all that can fail without a hook has failed before the first is called.
PyObject* walk_graph(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

// _C.is_wrapped_number(tensor: Tensor) -> bool: whether it stands for a number of Python, so that it does not decide
// about the dtype of a result.
PyObject* is_wrapped_number(PyObject* module, PyObject* tensor);

// _C.mark_wrapped_number(tensor: Tensor): makes it one, which no copy of a wrapped number is by itself.
PyObject* mark_wrapped_number(PyObject* module, PyObject* tensor);

// _C.leaves(outputs: list[Tensor]) -> list[Tensor]: the leaves in the order in which the engine would accumulate.
PyObject* leaves_of(PyObject* module, PyObject* outputs);

}  // namespace backbind::python
