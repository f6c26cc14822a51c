#include "python/wrapped_number.h"

#include "python/bridge.h"

namespace backbind::python {

namespace {

c10::TensorImpl& impl_of(PyObject* tensor) {
  TORCH_CHECK_TYPE(is_tensor(tensor), "expected a tensor, got ", Py_TYPE(tensor)->tp_name);
  return *tensor_of(tensor).unsafeGetTensorImpl();
}

}  // namespace

PyObject* is_wrapped_number(PyObject* /*module*/, PyObject* tensor) {
  return guarded([&] { return PyBool_FromLong(impl_of(tensor).is_wrapped_number()); });
}

PyObject* mark_wrapped_number(PyObject* /*module*/, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_VALUE(impl_of(tensor).dim() == 0, "only a tensor of no dimensions can stand for a number");
    impl_of(tensor).set_wrapped_number(true);
    Py_RETURN_NONE;
  });
}

}  // namespace backbind::python
