// What the extension needs of torch's own Python side, behind plain functions: the headers that offer it cost more to
// compile than everything else here, so a single file includes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/SymInt.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/python_headers.h>

#include "python/object.h"

namespace backbind::python {

// Whether the object is a tensor of any class. Runs no code of the object's.
bool is_tensor(PyObject* object);

// Whether it is exactly a torch.Tensor or Parameter, not of a subclass with a will of its own.
bool is_plain_tensor(PyObject* object);

// The tensor inside an object for which is_tensor holds.
const at::Tensor& tensor_of(PyObject* object);

// None for an undefined tensor.
Owned tensor_to_python(const at::Tensor& tensor);

// A torch.SymInt, torch.SymFloat or torch.SymBool.
Owned symbol_to_python(const c10::SymInt& value);
Owned symbol_to_python(const at::Scalar& value);

// The size in a torch.SymInt, or in anything that is a symbol or an index. Throws TypeError for anything else.
c10::SymInt symbol_of(PyObject* object);

// The node behind a Python object (`tensor.grad_fn`), or null for the object of a Python autograd.Function, which has
// no C++ binding.
//
// Throws TypeError for anything that is not a node.
c10::intrusive_ptr<torch::autograd::Node> node_of(PyObject* object);

// The object of a node in Python, as in tensor.grad_fn.
Owned python_node(const c10::intrusive_ptr<torch::autograd::Node>& node);

// Whether a node is that of a Python autograd.Function.
bool is_python_function(torch::autograd::Node& node);

// Runs `body(context)` as torch's own bindings run: C++ exceptions become Python exceptions and a null result, C++
// warnings become Python warnings.
PyObject* run_guarded(PyObject* (*body)(void*), void* context);

// Throws the Python exception that is set, so that it goes through code that may not hold the GIL; as the C++ exception
// that it was made of, if `guarded` has made it inside a function of torch that runs further up the stack.
[[noreturn]] void throw_python_error();

// To be called before code is run whose errors may be thrown by throw_python_error.
void forget_translated_errors();

// The same for a callable.
template <class Body>
PyObject* guarded(Body&& body) {
  return run_guarded([](void* context) { return (*static_cast<std::remove_reference_t<Body>*>(context))(); }, &body);
}

}  // namespace backbind::python
