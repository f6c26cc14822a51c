#include "python/bridge.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <utility>

namespace backbind::python {

// torch's own check goes on to ask an object for its __class__, which may be a property that runs any code, or that of
// a mock, and no tensor lies behind that.
bool is_tensor(PyObject* object) {
  return THPVariableClass != nullptr &&
         PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(THPVariableClass)) != 0;
}

bool is_plain_tensor(PyObject* object) { return THPVariable_CheckExact(object); }

const at::Tensor& tensor_of(PyObject* object) { return THPVariable_Unpack(object); }

Owned tensor_to_python(const at::Tensor& tensor) { return checked(THPVariable_Wrap(tensor)); }

Owned symbol_to_python(const c10::SymInt& value) { return Owned(py::cast(value).release().ptr()); }

Owned symbol_to_python(const at::Scalar& value) { return Owned(py::cast(value).release().ptr()); }

c10::SymInt symbol_of(PyObject* object) {
  TORCH_CHECK_TYPE(PyIndex_Check(object) != 0, "sizes must be ints, got ", Py_TYPE(object)->tp_name);
  return py::cast<c10::SymInt>(py::handle(object));
}

c10::intrusive_ptr<torch::autograd::Node> node_of(PyObject* object) {
  if (torch::autograd::THPCppFunction_Check(object)) {
    return reinterpret_cast<torch::autograd::THPCppFunction*>(object)->cdata;
  }
  // As for tensors: by the type alone, not by what the object says of itself.
  if (PyObject_TypeCheck(object, &THPFunctionType) != 0) return {};
  TORCH_CHECK_TYPE(false, "expected an autograd node (as in tensor.grad_fn), got ", Py_TYPE(object)->tp_name);
}

Owned python_node(const c10::intrusive_ptr<torch::autograd::Node>& node) {
  return checked(torch::autograd::functionToPyObject(node));
}

bool is_python_function(torch::autograd::Node& node) {
  // torch exports no type information of PyNode.
  const Owned object = python_node(node.getptr());
  return THPFunction_Check(object.get());
}

namespace {

// Whether warnings of C++ are already on their way to Python: a function of torch that runs further up the stack will
// issue them when it ends, as the engine does at the end of a backward.
bool delays_warnings() {
  static c10::WarningHandler* const base = c10::WarningUtils::get_warning_handler();
  return c10::WarningUtils::get_warning_handler() != base;
}

// The C++ exception behind a Python error that was made of it, so that it can go on as what it was. One for each
// thread, because errors are; the reference is held until the next one, and with the last thread for good.
struct Translated {
  PyObject* error = nullptr;
  std::exception_ptr exception;
};
thread_local Translated last_translated;

// Makes a Python error of the exception that is being handled.
void translate(const std::exception& error) {
  const bool is_of_python = dynamic_cast<const python_error*>(&error) != nullptr;
  std::exception_ptr exception = std::current_exception();
  torch::translate_exception_to_python(exception);
  if (is_of_python) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  last_translated.error = value;
  last_translated.exception = std::move(exception);
  PyErr_Restore(type, value, traceback);
}

PyObject* run_without_warnings(PyObject* (*body)(void*), void* context) {
  try {
    return body(context);
  } catch (const PythonErrorSet&) {
    return nullptr;
  } catch (const std::exception& error) {
    translate(error);
    return nullptr;
  }
}

}  // namespace

void forget_translated_errors() { last_translated = {}; }

void throw_python_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && value == last_translated.error) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    last_translated.error = nullptr;
    std::rethrow_exception(std::exchange(last_translated.exception, nullptr));
  }
  PyErr_Restore(type, value, traceback);
  python_error error;
  error.persist();
  throw error;
}

PyObject* run_guarded(PyObject* (*body)(void*), void* context) {
  if (delays_warnings()) return run_without_warnings(body, context);
  HANDLE_TH_ERRORS
  PyObject* result = run_without_warnings(body, context);
  // Warnings are issued all the same, around the error that is set.
  if (result == nullptr) __enforce_warning_buffer.set_in_exception();
  return result;
  END_HANDLE_TH_ERRORS
}

}  // namespace backbind::python
