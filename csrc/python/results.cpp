#include "python/results.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <utility>

namespace backbind::python {

namespace {

Owned borrowed(PyObject* object) {
  Py_INCREF(object);
  return Owned(object);
}

Owned dtype_to_python(int64_t number) {
  return borrowed(reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(number))));
}

Owned value_to_python(ValueKind kind, const c10::IValue& value) {
  if (value.isNone()) return borrowed(Py_None);
  switch (kind) {
    case ValueKind::ScalarType:
    case ValueKind::OptionalScalarType:
      return dtype_to_python(value.toInt());
    case ValueKind::ScalarTypeList: {
      const auto numbers = value.toIntVector();
      Owned list = checked(PyList_New(static_cast<Py_ssize_t>(numbers.size())));
      for (size_t i = 0; i < numbers.size(); ++i) {
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), dtype_to_python(numbers[i]).release());
      }
      return list;
    }
    case ValueKind::Layout:
    case ValueKind::OptionalLayout:
      return borrowed(reinterpret_cast<PyObject*>(torch::getTHPLayout(value.toLayout())));
    case ValueKind::OptionalTensor:
      return checked(THPVariable_Wrap(value.toTensor()));
    default:
      return Owned(torch::jit::toPyObject(value).release().ptr());
  }
}

}  // namespace

Owned gradients_to_python(variable_list&& gradients) {
  Owned list = checked(PyList_New(static_cast<Py_ssize_t>(gradients.size())));
  for (size_t i = 0; i < gradients.size(); ++i) {
    // Wraps an undefined tensor as None.
    Owned item = checked(THPVariable_Wrap(std::move(gradients[i])));
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return list;
}

Owned packed_to_python(const Binding& binding, const ivalue_list& values) {
  Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  PyTuple_SET_ITEM(tuple.get(), 0, torch::jit::toPyObject(values[0]).release().ptr());
  for (size_t i = 1; i < values.size(); ++i) {
    Owned item = value_to_python(binding.arguments[i - 1].kind, values[i]);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return tuple;
}

}  // namespace backbind::python
