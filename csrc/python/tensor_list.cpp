#include "python/tensor_list.h"

#include "python/bridge.h"

namespace backbind::python {

variable_list optional_tensors_of(PyObject* sequence, const char* what) {
  TORCH_CHECK_TYPE(PyList_Check(sequence) || PyTuple_Check(sequence), what,
                   " must be a list or tuple of tensors and None, got ", Py_TYPE(sequence)->tp_name);
  variable_list tensors;
  tensors.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence)));
  // Neither reading the type of an object nor copying a tensor runs code that could change the list.
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence, i);
    TORCH_CHECK_TYPE(item == Py_None || is_tensor(item), what, " must be tensors or None, element ", i, " is a ",
                     Py_TYPE(item)->tp_name);
    tensors.push_back(item == Py_None ? at::Tensor() : tensor_of(item));
  }
  return tensors;
}

variable_list moved_tensors_of(PyObject* list, const char* what) {
  TORCH_CHECK_TYPE(PyList_Check(list), what, " must be a list, got ", Py_TYPE(list)->tp_name);
  variable_list tensors = optional_tensors_of(list, what);
  if (PyList_SetSlice(list, 0, PyList_GET_SIZE(list), nullptr) < 0) throw PythonErrorSet();
  return tensors;
}

}  // namespace backbind::python
