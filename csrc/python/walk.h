// The walk over a live graph, as plain Python data.
#pragma once

#include <torch/csrc/python_headers.h>

namespace backbind::python {

// _C.walk(roots: list[Tensor], wanted: list[Tensor]) -> (steps, roots, gradients), where
//   steps is a list of (node, operator name or None, incoming gradients, runs, hooks, packed or None, targets):
//     node: the node's name; incoming gradients: their number; runs: whether the node runs; hooks: kinds in words;
//     packed: (needs_input_grad, *saved); targets: for each gradient (step, input, fit or None), or None;
//     fit: (sizes, dtype)
//   roots is a list of (step, input), gradients a list of (step, input) or None.
PyObject* walk_graph(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

// _C.leaves(roots: list[Tensor]) -> list[Tensor]: the leaves in the order in which the engine would accumulate.
PyObject* leaves_of(PyObject* module, PyObject* roots);

}  // namespace backbind::python
