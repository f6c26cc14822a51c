// Hooks of every kind that C++ can put on a tensor or a node.
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "library.h"

namespace from_cpp {

namespace {

using torch::autograd::Node;

// What a hook does with the gradient that it sees.
Tensor done_to(const Tensor& gradient, const std::string& what) {
  if (!gradient.defined()) return gradient;
  if (what == "halves") return gradient * 0.5;
  if (what == "raises") throw Refused(3);
  if (what == "fails a check") TORCH_CHECK_INDEX(false, "a hook fails on ", gradient.sizes());
  if (what == "standard type") throw std::invalid_argument("a hook has no use for this");
  if (what == "wrong size") return gradient.new_ones({gradient.numel() + 1});
  if (what == "backward inside") {
    const at::AutoGradMode with_graph(true);
    const Tensor value = gradient.detach().requires_grad_();
    cube(value).sum().backward();
    return gradient + value.grad();
  }
  TORCH_CHECK(what == "looks", "no hook does ", what);
  return gradient;
}

variable_list done_to(const variable_list& gradients, const std::string& what, const std::string& name) {
  variable_list results;
  for (const Tensor& gradient : gradients) {
    note(name, gradient);
    results.push_back(done_to(gradient, what));
  }
  return results;
}

struct PreHook : torch::autograd::FunctionPreHook {
  PreHook(std::string name_, std::string what_) : name(std::move(name_)), what(std::move(what_)) {}
  variable_list operator()(const variable_list& gradients) override { return done_to(gradients, what, name); }
  std::string name, what;
};

struct PostHook : torch::autograd::FunctionPostHook {
  PostHook(std::string name_, std::string what_) : name(std::move(name_)), what(std::move(what_)) {}
  variable_list operator()(const variable_list& results, const variable_list& gradients) override {
    for (const Tensor& gradient : gradients) note(name + " (what came in)", gradient);
    return done_to(results, what, name);
  }
  std::string name, what;
};

struct Accumulated : torch::autograd::PostAccumulateGradHook {
  Accumulated(std::string name_, std::string what_) : name(std::move(name_)), what(std::move(what_)) {}
  void operator()(const Tensor& leaf) override {
    note(name, leaf.grad());
    if (what == "looks") return;
    const Tensor changed = done_to(leaf.grad(), what);
    leaf.mutable_grad() = changed;
  }
  std::string name, what;
};

Node& node_of(const Tensor& t) {
  const auto edge = torch::autograd::impl::gradient_edge(t);
  TORCH_CHECK(edge.function != nullptr, "this tensor has no node");
  return *edge.function;
}

void hook(const Tensor& t, const std::string& kind, const std::string& name, const std::string& what) {
  if (kind == "tensor") {
    t.register_hook([name, what](const Tensor& gradient) {
      note(name, gradient);
      return done_to(gradient, what);
    });
  } else if (kind == "tensor that returns nothing") {
    t.register_hook([name, what](const Tensor& gradient) -> void {
      note(name, gradient);
      done_to(gradient, what);
    });
  } else if (kind == "node pre") {
    node_of(t).add_pre_hook(std::make_unique<PreHook>(name, what));
  } else if (kind == "node post") {
    node_of(t).add_post_hook(std::make_unique<PostHook>(name, what));
  } else if (kind == "accumulated") {
    torch::autograd::impl::set_post_acc_grad_hooks(t, std::make_unique<Accumulated>(name, what));
  } else {
    TORCH_CHECK(false, "there is no kind of hook named ", kind);
  }
}

}  // namespace

void define_hooks(torch::Library& library) {
  library.def("hook", &hook);
  library.def("retain_grad", [](const Tensor& t) { t.retain_grad(); });
}

}  // namespace from_cpp
