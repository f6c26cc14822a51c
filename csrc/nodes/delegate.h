// Support for delegates: functional backwards that fill a short-lived node struct and call its apply.
//
// A node struct is stateful and looks around; three things would make a plain delegate impure, and are handled here:
// the running backward decides which gradients it computes, saved_tensors_hooks fire when a field is filled, and
// tensors made in inference mode are refused.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <optional>
#include <vector>

#include "torch_private.h"

namespace backbind {

// The edges of a delegate: one for each gradient it can produce, leading somewhere where that gradient is needed.
class DelegateEdges {
 public:
  explicit DelegateEdges(size_t count);
  void add(bool needed);
  void add_list(bool needed, size_t size);
  DelegateEdges(const DelegateEdges&) = delete;
  DelegateEdges& operator=(const DelegateEdges&) = delete;
  ~DelegateEdges();
  torch::autograd::edge_list take();

 private:
  torch::autograd::edge_list edges_;
  c10::intrusive_ptr<torch::autograd::Node> sink_;
};

// Owns a delegate. One class for all node types, because a smart pointer for each would be most of what the compiler
// spends its time on.
class DelegateOwner {
 public:
  explicit DelegateOwner(std::unique_ptr<torch::autograd::Node>&& node);
  ~DelegateOwner();
  DelegateOwner(const DelegateOwner&) = delete;
  DelegateOwner& operator=(const DelegateOwner&) = delete;

  torch::autograd::Node& node() const { return *node_; }

 private:
  c10::intrusive_ptr<torch::autograd::Node> node_;
};

// Makes an empty node struct. The sequence number is given, so that none is taken from the thread's counter.
template <class Node>
std::unique_ptr<torch::autograd::Node> make_delegate(DelegateEdges&& edges) {
  return std::unique_ptr<torch::autograd::Node>(new Node(/*sequence_nr=*/uint64_t{0}, edges.take()));
}

// Fills the fields that hold saved tensors; other fields are assigned directly. Lives only while fields are filled.
class FieldFiller {
 public:
  void operator()(torch::autograd::SavedVariable& field, const at::Tensor& value);
  void operator()(std::vector<torch::autograd::SavedVariable>& field, const std::vector<at::Tensor>& value);
  void operator()(std::vector<torch::autograd::SavedVariable>& field,
                  const c10::List<std::optional<at::Tensor>>& value);

 private:
  torch_private::SavedTensorHooksPaused paused_;
};

}  // namespace backbind
