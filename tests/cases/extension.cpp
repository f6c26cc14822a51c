// What cases of C++ code call: an autograd function, hooks, a backward that is started from C++.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// gain * t ** power, whose three numbers live in saved_data.
struct Gain : torch::autograd::Function<Gain> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t, double gain, int64_t power, bool flip) {
    ctx->save_for_backward({t});
    ctx->saved_data["gain"] = gain;
    ctx->saved_data["power"] = power;
    ctx->saved_data["flip"] = flip;
    return t.pow(power) * gain;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor t = ctx->get_saved_variables()[0];
    const double gain = ctx->saved_data["gain"].toDouble();
    const int64_t power = ctx->saved_data["power"].toInt();
    Tensor result = gradients[0] * t.pow(power - 1) * (gain * static_cast<double>(power));
    if (ctx->saved_data["flip"].toBool()) result = -result;
    return {result, Tensor(), Tensor(), Tensor()};
  }
};

// The identity, whose backward warns.
struct Warner : torch::autograd::Function<Warner> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t, std::string text) {
    ctx->saved_data["text"] = std::move(text);
    return t.clone();
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    TORCH_WARN(ctx->saved_data["text"].toStringRef());
    return {gradients[0], Tensor()};
  }
};

// The identity, whose backward raises.
struct Thrower : torch::autograd::Function<Thrower> {
  static Tensor forward(AutogradContext*, const Tensor& t) { return t.clone(); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    TORCH_CHECK_VALUE(false, "no gradient of size ", gradients[0].numel(), " is welcome here");
  }
};

Tensor gain(const Tensor& t, double gain, int64_t power, bool flip) { return Gain::apply(t, gain, power, flip); }

Tensor warner(const Tensor& t, std::string text) { return Warner::apply(t, std::move(text)); }

Tensor thrower(const Tensor& t) { return Thrower::apply(t); }

void scale_gradient(const Tensor& t, double factor) {
  t.register_hook([factor](const Tensor& gradient) { return gradient * factor; });
}

void backward(const Tensor& t) { t.backward(); }

}  // namespace

TORCH_LIBRARY(backbind_cases, library) {
  library.def("gain", &gain);
  library.def("warner", &warner);
  library.def("thrower", &thrower);
  library.def("scale_gradient", &scale_gradient);
  library.def("backward", &backward);
}
