#include "python/gradient_functions.h"

#include <ATen/ExpandUtils.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <utility>
#include <vector>

#include "gradients/sum.h"
#include "gradients/validate.h"
#include "python/bridge.h"
#include "python/tensor_list.h"

namespace backbind::python {

namespace {

std::optional<at::Tensor> optional_tensor_of(PyObject* object, const char* what) {
  if (object == Py_None) return std::nullopt;
  TORCH_CHECK_TYPE(is_tensor(object), what, " must be a tensor or None, got ", Py_TYPE(object)->tp_name);
  return tensor_of(object);
}

// A size, symbolic or not.
c10::SymInt size_of(PyObject* object) {
  if (!PyLong_Check(object)) return symbol_of(object);
  const long long size = PyLong_AsLongLong(object);
  if (size == -1 && PyErr_Occurred() != nullptr) throw PythonErrorSet();
  return c10::SymInt(int64_t{size});
}

// Whether the gradient has these sizes and this dtype already.
bool is_valid(const at::Tensor& gradient, const std::vector<c10::SymInt>& sizes, std::optional<at::ScalarType> dtype,
              std::optional<at::Device> device) {
  return !device.has_value() && (!dtype.has_value() || gradient.scalar_type() == *dtype) &&
         gradient.sym_sizes().equals(sizes);
}

// With eager's text.
[[noreturn]] void refuse_sizes(const at::Tensor& gradient, c10::SymIntArrayRef sizes, PyObject* node, PyObject* index) {
  const Owned name = checked(PyObject_Str(node));
  const Owned number = checked(PyObject_Str(index));
  TORCH_CHECK(false, "Function ", PyUnicode_AsUTF8(name.get()), " returned an invalid gradient at index ",
              PyUnicode_AsUTF8(number.get()), " - got ", gradient.sym_sizes(), " but expected shape compatible with ",
              sizes);
}

}  // namespace

PyObject* validate_grad(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(count == 6,
                     "validate_grad() takes a gradient, sizes, a dtype, a device, a node's name and an index, got ",
                     count, " arguments");
    const std::optional<at::Tensor> gradient = optional_tensor_of(arguments[0], "gradient");
    if (!gradient.has_value()) Py_RETURN_NONE;
    const auto sizes =
        vector_of(arguments[1], "sizes", "ints", [](PyObject* item, Py_ssize_t) { return size_of(item); });
    TORCH_CHECK_TYPE(arguments[2] == Py_None || THPDtype_Check(arguments[2]), "dtype must be a torch.dtype or None");
    std::optional<at::ScalarType> dtype;
    if (arguments[2] != Py_None) dtype = reinterpret_cast<THPDtype*>(arguments[2])->scalar_type;
    std::optional<at::Device> device;
    if (arguments[3] != Py_None) {
      TORCH_CHECK_TYPE(THPDevice_Check(arguments[3]), "device must be a torch.device or None");
      device = reinterpret_cast<THPDevice*>(arguments[3])->device;
    }
    if (is_valid(*gradient, sizes, dtype, device)) return shared(arguments[0]).release();
    if (!at::is_expandable_to(sizes, gradient->sym_sizes())) refuse_sizes(*gradient, sizes, arguments[4], arguments[5]);
    at::Tensor valid;
    {
      const GilReleased released;
      valid = backbind::validate_grad(gradient, sizes, dtype, device);
    }
    return tensor_to_python(valid).release();
  });
}

PyObject* add_to_buffer(PyObject* /*module*/, PyObject* list) {
  return guarded([&]() -> PyObject* {
    variable_list parts = moved_tensors_of(list, "gradients");
    TORCH_CHECK_VALUE(parts.size() == 2, "add_to_buffer() takes two gradients, got ", parts.size());
    if (!parts[1].defined()) std::swap(parts[0], parts[1]);
    if (parts[0].defined()) {
      const GilReleased released;
      backbind::add_to_buffer(parts[0], std::move(parts[1]), nullptr);
    } else {
      parts[0] = std::move(parts[1]);
    }
    return tensor_to_python(parts[0]).release();
  });
}

PyObject* accumulate_grad(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    TORCH_CHECK_TYPE(count == 2, "accumulate_grad() takes a leaf and a list, got ", count, " arguments");
    TORCH_CHECK_TYPE(is_tensor(arguments[0]), "the leaf must be a tensor, got ", Py_TYPE(arguments[0])->tp_name);
    const at::Tensor& leaf = tensor_of(arguments[0]);
    variable_list gradients = moved_tensors_of(arguments[1], "gradients");
    const GilReleased released;
    const auto node = torch::autograd::impl::grad_accumulator(leaf);
    TORCH_CHECK(node != nullptr, "a gradient can only be accumulated into a leaf that requires grad");
    (*node)(std::move(gradients));
    Py_RETURN_NONE;
  });
}

}  // namespace backbind::python
