#include "python/nodes.h"

#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>

namespace backbind::python {

c10::intrusive_ptr<torch::autograd::Node> node_of(PyObject* object) {
  if (torch::autograd::THPCppFunction_Check(object)) {
    return reinterpret_cast<torch::autograd::THPCppFunction*>(object)->cdata;
  }
  if (THPFunction_Check(object)) return {};
  TORCH_CHECK_TYPE(false, "expected an autograd node (as in tensor.grad_fn), got ", Py_TYPE(object)->tp_name);
}

}  // namespace backbind::python
