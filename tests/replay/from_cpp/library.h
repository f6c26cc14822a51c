// What the parts of the library share.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <exception>
#include <string>

namespace from_cpp {

using at::Tensor;
using torch::autograd::variable_list;

// An exception that torch knows nothing of.
struct Refused : std::exception {
  explicit Refused(int number) : code(number) {}
  const char* what() const noexcept override { return "refused"; }
  int code;
};

// Notes what C++ code sees, in the order in which it does.
void note(const std::string& what, const Tensor& tensor);

Tensor cube(const Tensor& t);

void define_functions(torch::Library& library);
void define_hooks(torch::Library& library);

}  // namespace from_cpp
