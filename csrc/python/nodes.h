// From the Python object of a node (`tensor.grad_fn`) to the node.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/python_headers.h>

namespace backbind::python {

// The node behind a Python object, or null for the object of a Python autograd.Function, which has no C++ binding.
//
// Throws TypeError for anything that is not a node.
c10::intrusive_ptr<torch::autograd::Node> node_of(PyObject* object);

}  // namespace backbind::python
