// Autograd functions written in C++.
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

#include "library.h"

namespace from_cpp {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;

// Saves an input and its output, and can be differentiated again.
struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t) {
    Tensor result = t * t * t;
    ctx->save_for_backward({t, result});
    return result;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    note("Cube", gradients[0]);
    return {gradients[0] * saved[0] * saved[0] * 3 + saved[1] * 0};
  }
};

// Two outputs, of which the backward tells which have a gradient.
struct Split : Function<Split> {
  static variable_list forward(AutogradContext* ctx, const Tensor& t, bool materialize) {
    ctx->set_materialize_grads(materialize);
    return {t * 2, t * 3};
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    note("Split first", gradients[0]);
    note("Split second", gradients[1]);
    Tensor result;
    if (gradients[0].defined()) result = gradients[0] * 2;
    if (gradients[1].defined()) result = result.defined() ? result + gradients[1] * 3 : gradients[1] * 3;
    return {result, Tensor()};
  }
};

// Doubles in place.
struct Doubled : Function<Doubled> {
  static Tensor forward(AutogradContext* ctx, Tensor t) {
    ctx->mark_dirty({t});
    return t.mul_(2);
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 2}; }
};

// Sorts; where the values came from has no gradient.
struct Sorted : Function<Sorted> {
  static variable_list forward(AutogradContext* ctx, const Tensor& t) {
    auto [values, places] = t.sort();
    ctx->mark_non_differentiable({places});
    ctx->save_for_backward({places});
    return {values, places};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    return {at::zeros_like(gradients[0]).scatter(0, ctx->get_saved_variables()[0], gradients[0])};
  }
};

// The identity, whose backward runs another backward inside.
struct Inner : Function<Inner> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t) {
    ctx->save_for_backward({t});
    return t.clone();
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const at::AutoGradMode with_graph(true);
    const Tensor value = ctx->get_saved_variables()[0].detach().requires_grad_();
    const Tensor inner = torch::autograd::grad({cube(value).sum()}, {value})[0];
    note("Inner", inner);
    return {gradients[0] * inner.detach()};
  }
};

// The identity, whose backward raises, or gives back what it must not.
struct Fails : Function<Fails> {
  static Tensor forward(AutogradContext* ctx, const Tensor& t, std::string how) {
    ctx->saved_data["how"] = std::move(how);
    return t.clone();
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const std::string how = ctx->saved_data["how"].toStringRef();
    if (how == "check") TORCH_CHECK_VALUE(false, "no gradient of size ", gradients[0].numel(), " is welcome");
    if (how == "own type") throw Refused(7);
    if (how == "standard type") throw std::out_of_range("out of range in a function");
    if (how == "too few") return {gradients[0]};
    if (how == "too many") return {gradients[0], Tensor(), Tensor()};
    if (how == "wrong size") return {gradients[0].new_ones({gradients[0].numel() + 1}), Tensor()};
    if (how == "for a number") return {gradients[0], gradients[0]};
    return {gradients[0], Tensor()};
  }
};

}  // namespace

Tensor cube(const Tensor& t) { return Cube::apply(t); }

void define_functions(torch::Library& library) {
  library.def("cube", &cube);
  library.def("split", [](const Tensor& t, bool materialize) { return Split::apply(t, materialize); });
  library.def("doubled", [](const Tensor& t) { return Doubled::apply(t.clone()); });
  library.def("sorted", [](const Tensor& t) { return Sorted::apply(t)[0]; });
  library.def("inner", [](const Tensor& t) { return Inner::apply(t); });
  library.def("fails", [](const Tensor& t, std::string how) { return Fails::apply(t, std::move(how)); });
}

}  // namespace from_cpp
