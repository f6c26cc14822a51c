// Backwards that are asked for in C++, through functions and hooks written in C++, in threads that Python never saw.
#include "library.h"

#include <torch/library.h>

#include <barrier>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace from_cpp {

namespace {

std::mutex seen_mutex;
std::vector<std::string> seen_names;
variable_list seen_tensors;

// An empty list stands for none, because operators take no list that may be left out.
std::optional<bool> as_optional(int64_t value) { return value < 0 ? std::nullopt : std::optional<bool>(value != 0); }

void backward(const variable_list& roots, const variable_list& gradients, int64_t retain_graph, bool create_graph,
              const variable_list& inputs) {
  torch::autograd::backward(roots, gradients, as_optional(retain_graph), create_graph, inputs);
}

// The member of Tensor, which users of libtorch call most.
void member_backward(const Tensor& root, const std::optional<Tensor>& gradient, int64_t retain_graph,
                     bool create_graph) {
  root.backward(gradient.value_or(Tensor()), as_optional(retain_graph), create_graph);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& gradients,
                   int64_t retain_graph, bool create_graph, bool allow_unused) {
  return torch::autograd::grad(outputs, inputs, gradients, as_optional(retain_graph), create_graph, allow_unused);
}

// What the C++ caller of a backward catches: type and text.
std::string caught(const Tensor& root) {
  try {
    root.backward();
  } catch (const Refused& error) {
    return std::string("Refused: ") + error.what() + " " + std::to_string(error.code);
  } catch (const c10::ValueError& error) {
    return std::string("c10::ValueError: ") + error.what_without_backtrace();
  } catch (const c10::Error& error) {
    return std::string("c10::Error: ") + error.what_without_backtrace();
  } catch (const std::exception& error) {
    return std::string("std::exception: ") + error.what();
  }
  return "nothing";
}

// Runs `body` for each number below `count` in a thread of C++'s own, all at once; what each raised, or nothing.
template <class Body>
std::vector<std::string> in_threads(size_t count, const Body& body) {
  std::vector<std::string> errors(count);
  std::barrier begin(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      try {
        body(i);
      } catch (const c10::Error& error) {
        errors[i] = error.what_without_backtrace();
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<std::string> backward_in_threads(const variable_list& roots) {
  return in_threads(roots.size(), [&](size_t i) { roots[i].backward({}, /*keep_graph=*/true); });
}

// Forwards and backwards of a small model, whose graph is another for each seed; the gradients of all steps.
variable_list train(const Tensor& start, int64_t seed, int64_t steps) {
  const Tensor weight = start.detach().clone().requires_grad_();
  variable_list gradients;
  for (int64_t step = 0; step < steps; ++step) {
    Tensor value = at::ones({3, weight.size(0)}).matmul(weight);
    for (int64_t i = 0; i < seed + 2; ++i) value = (seed >> i) & 1 ? value.tanh() : value.sin() * weight.sum();
    value = cube(value);
    value.register_hook([](const Tensor& gradient) { return gradient * 0.5; });
    value.sum().backward();
    gradients.push_back(weight.grad());
    weight.mutable_grad() = Tensor();
  }
  return gradients;
}

// One list after another, in the order of the seeds.
variable_list train_in_threads(const Tensor& start, const std::vector<int64_t>& seeds, int64_t steps) {
  std::vector<variable_list> made(seeds.size());
  const auto errors = in_threads(seeds.size(), [&](size_t i) { made[i] = train(start, seeds[i], steps); });
  variable_list all;
  for (size_t i = 0; i < seeds.size(); ++i) {
    TORCH_CHECK(errors[i].empty(), errors[i]);
    all.insert(all.end(), made[i].begin(), made[i].end());
  }
  return all;
}

std::vector<std::string> take_names() {
  const std::lock_guard lock(seen_mutex);
  return std::exchange(seen_names, {});
}

variable_list take_tensors() {
  const std::lock_guard lock(seen_mutex);
  return std::exchange(seen_tensors, {});
}

}  // namespace

void note(const std::string& what, const Tensor& tensor) {
  const at::NoGradGuard without_graph;
  const Tensor copy = tensor.defined() ? tensor.detach().clone() : at::full({}, -1.0);
  const std::lock_guard lock(seen_mutex);
  seen_names.push_back(tensor.defined() ? what : what + " (undefined)");
  seen_tensors.push_back(copy);
}

}  // namespace from_cpp

TORCH_LIBRARY(backbind_from_cpp, library) {
  using namespace from_cpp;
  library.def("backward", &backward);
  library.def("member_backward", &member_backward);
  library.def("grad", &grad);
  library.def("caught", &caught);
  library.def("backward_in_threads", &backward_in_threads);
  library.def("train", &train);
  library.def("train_in_threads", &train_in_threads);
  library.def("take_names", &take_names);
  library.def("take_tensors", &take_tensors);
  define_functions(library);
  define_hooks(library);
}
