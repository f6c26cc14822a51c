// A device that is none: its tensors lie in the memory of the CPU, and no operator knows them. Functions lead a graph
// there and back.
#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

Tensor to_device(const Tensor& tensor) {
  auto* memory = new Tensor(tensor.contiguous());
  c10::DataPtr data(memory->data_ptr(), memory, [](void* held) { delete static_cast<Tensor*>(held); }, kDevice);
  c10::Storage storage(c10::Storage::use_byte_size_t(), tensor.nbytes(), std::move(data), nullptr, false);
  Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), tensor.dtype());
  result.unsafeGetTensorImpl()->set_sizes_contiguous(tensor.sizes());
  return result;
}

Tensor to_cpu(const Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), at::device(at::kCPU).dtype(tensor.dtype())).clone();
}

struct There : Function<There> {
  static Tensor forward(AutogradContext*, const Tensor& tensor) { return to_device(tensor); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {to_cpu(gradients[0])}; }
};

struct Back : Function<Back> {
  static Tensor forward(AutogradContext*, const Tensor& tensor) { return to_cpu(tensor); }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {to_device(gradients[0])}; }
};

// Before the first backward, because the engine counts devices then.
void add_device(bool with_hooks) {
  using Guard = c10::impl::FakeGuardImpl<c10::DeviceType::PrivateUse1>;
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::PrivateUse1, new Guard());
  static Hooks hooks;
  if (with_hooks) at::RegisterPrivateUse1HooksInterface(&hooks);
}

TORCH_LIBRARY(backbind_fake_device, library) {
  library.def("add_device", &add_device);
  library.def("there", [](const Tensor& tensor) { return There::apply(tensor); });
  library.def("back", [](const Tensor& tensor) { return Back::apply(tensor); });
}

}  // namespace
