#include "nodes/needed_inputs.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>
#include <vector>

#include "nodes/sink.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

// Whether a graph leads to anything but stand-ins, whose gradients would arrive at a Sink. Looks at the nodes that were
// made from sequence number `first` on: what they lead to and is older was there before, and the accumulators of leaves
// have the highest number of all.
bool leads_elsewhere(const c10::intrusive_ptr<Node>& root, uint64_t first) {
  std::vector<const Node*> waiting{root.get()};
  std::unordered_set<const Node*> met{root.get()};
  while (!waiting.empty()) {
    const Node* node = waiting.back();
    waiting.pop_back();
    if (dynamic_cast<const Sink*>(node) != nullptr) continue;
    if (node->sequence_nr() < first || node->num_outputs() == 0) return true;
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid() && met.insert(edge.function.get()).second) waiting.push_back(edge.function.get());
    }
  }
  return false;
}

}  // namespace

NeededInputs::NeededInputs() : first_(at::sequence_number::peek()) {}

at::Tensor NeededInputs::input(const at::Tensor& value, bool needed) {
  if (!needed || !value.defined() || value.requires_grad()) return value;
  if (!c10::isFloatingType(value.scalar_type()) && !c10::isComplexType(value.scalar_type())) return value;
  at::Tensor stand_in = value.is_inference() ? torch_private::as_ordinary_tensor(value) : value.detach();
  const auto node = c10::make_intrusive<Sink>();
  const uint32_t position = node->add_input_metadata(stand_in);
  torch::autograd::impl::set_gradient_edge(stand_in, {node, position});
  has_stand_ins_ = true;
  return stand_in;
}

variable_list NeededInputs::gradients(variable_list&& gradients) const {
  if (has_stand_ins_ && c10::GradMode::is_enabled()) {
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined() || !gradient.requires_grad()) continue;
      if (!leads_elsewhere(torch::autograd::impl::gradient_edge(gradient).function, first_)) {
        gradient = gradient.detach();
      }
    }
  }
  return std::move(gradients);
}

}  // namespace backbind
